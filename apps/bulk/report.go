package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// report is what was moved, and how fast. Rates are in GB/s (10^9 bytes).
type report struct {
	// Device is the kind of device that the figures are of.
	Device string `json:"device"`
	Files  int    `json:"files"`
	// Bytes went to the device and came back.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	H2D    path   `json:"h2d"`
	D2H    path   `json:"d2h"`
	// Both is both directions over the wall time; they overlap where there is
	// more than one channel.
	Both path `json:"both"`
	// WallS and CPUS are seconds spent moving, both ways; CPU is of this process
	// with the simulated device in it.
	WallS float64 `json:"wall_s"`
	CPUS  float64 `json:"cpu_s"`
	// TotalS is everything: reading, hashing, moving, comparing.
	TotalS float64 `json:"total_s"`
}

// path is one direction.
type path struct {
	// Seconds during which at least one call was under way.
	Seconds float64 `json:"seconds"`
	GBs     float64 `json:"gb_s"`
	// MemcpyGBs is Go's copy of the same chunks, on one core, in the same run.
	MemcpyGBs  float64 `json:"memcpy_gb_s"`
	OverMemcpy float64 `json:"over_memcpy"`
}

func newPath(bytes int64, moved, copied time.Duration) path {
	p := path{Seconds: moved.Seconds()}
	if moved > 0 && copied > 0 {
		p.GBs = float64(bytes) / float64(moved)
		p.MemcpyGBs = float64(bytes) / float64(copied)
		p.OverMemcpy = p.GBs / p.MemcpyGBs
	}
	return p
}

func (m *mover) report(files *fileSet, kind string) *report {
	sum, _ := m.sums()
	return &report{
		Device: kind, Files: len(files.paths), Bytes: m.bytes, SHA256: sum,
		H2D: newPath(m.bytes, m.h2d.total, m.copied[0]), D2H: newPath(m.bytes, m.d2h.total, m.copied[1]),
		Both:  newPath(2*m.bytes, m.wall, m.copied[0]+m.copied[1]),
		WallS: m.wall.Seconds(), CPUS: m.cpu.Seconds(), TotalS: time.Since(m.begun).Seconds(),
	}
}

// bytesMoved is zero for a report that was never begun.
func (r *report) bytesMoved() int64 {
	if r == nil {
		return 0
	}
	return r.Bytes
}

func (r *report) write(w io.Writer, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	_, err := fmt.Fprintf(w, `%d files, %s to the %s device and back, SHA-256 equal
%s

                      GB/s   memcpy GB/s   ratio
h2d, host to device  %5.2f         %5.2f   %5.2f
d2h, device to host  %5.2f         %5.2f   %5.2f
both, overlapping    %5.2f         %5.2f   %5.2f

moving: %.2f s wall, %.2f s CPU; all with reading, hashing and memcpy: %.1f s
`,
		r.Files, byteText(r.Bytes), r.Device, r.SHA256,
		r.H2D.GBs, r.H2D.MemcpyGBs, r.H2D.OverMemcpy, r.D2H.GBs, r.D2H.MemcpyGBs, r.D2H.OverMemcpy,
		r.Both.GBs, r.Both.MemcpyGBs, r.Both.OverMemcpy, r.WallS, r.CPUS, r.TotalS)
	return err
}

// byteText writes a number of bytes for people.
func byteText(n int64) string {
	const kib = 1024
	switch {
	case n < kib:
		return fmt.Sprintf("%d bytes", n)
	case n < kib*kib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	case n < kib*kib*kib:
		return fmt.Sprintf("%.1f MiB", float64(n)/kib/kib)
	default:
		return fmt.Sprintf("%.2f GiB", float64(n)/kib/kib/kib)
	}
}
