package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
)

// errWrong means that a request had a wrong answer, or none.
var errWrong = errors.New("wrong answers")

// bodies are what the load test uploads, of all sizes up to the largest.
func bodies(largest int) (list [][]byte) {
	draw := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, largest / 100, largest / 10, largest / 3, largest} {
		b := make([]byte, size)
		_, _ = draw.Read(b) // it never fails
		list = append(list, b)
	}
	return list
}

// tally is what became of the requests.
type tally struct{ right, honest, wrong int }

// add compares an answer with what it should be. An error that says so is honest.
func (t *tally) add(r *vegeta.Result, list [][]byte) {
	var got answer
	u, err := url.Parse(r.URL)
	if err != nil {
		t.wrong++
		return
	}
	n, _ := strconv.Atoi(u.Query().Get("body"))
	want := answer{int64(len(list[n])), fmt.Sprintf("%08x", crc32.ChecksumIEEE(list[n]))}
	switch {
	case r.Code == http.StatusOK && json.Unmarshal(r.Body, &got) == nil && got == want:
		t.right++
	case r.Code == http.StatusServiceUnavailable:
		t.honest++
	default:
		t.wrong++
	}
}

// attack puts the service under load while the device is reset and loses processes.
func (s settings) attack(ctx context.Context, dev *nfcomms.Device, p *pool.Pool, at string, w io.Writer) error {
	list := bodies(s.size)
	next := atomic.Uint64{}
	targets := func(t *vegeta.Target) error {
		n := int(next.Add(1)) % len(list)
		*t = vegeta.Target{Method: http.MethodPost, URL: at + "/checksum?body=" + strconv.Itoa(n), Body: list[n]}
		return nil
	}
	attacker := vegeta.NewAttacker(vegeta.KeepAlive(true), vegeta.MaxWorkers(256), vegeta.Timeout(time.Minute))
	trouble, calm := context.WithCancel(ctx)
	done := make(chan troubles, 1)
	go func() { done <- makeTrouble(trouble, dev, s.duration/8) }()
	var t tally
	var m vegeta.Metrics
	var most uint64
	for r := range attacker.Attack(targets, vegeta.Rate{Freq: s.rate, Per: time.Second}, s.duration, "uploads") {
		m.Add(r)
		t.add(r, list)
		most = max(most, heap())
		if ctx.Err() != nil {
			attacker.Stop()
		}
	}
	m.Close()
	calm()
	made := <-done
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Fprintf(w, "%s device: %d uploads of up to %d bytes in %.1f s, %d at once at most\n", dev.Info().Kind(), m.Requests, s.size, m.Duration.Seconds(), s.places)
	fmt.Fprintf(w, "latency: median %.1f ms, p99 %.1f ms, most %.1f ms; heap: %.0f MiB at most\n",
		ms(m.Latencies.P50), ms(m.Latencies.P99), ms(m.Latencies.Max), float64(most)/(1<<20))
	fmt.Fprintf(w, "meanwhile: %d resets of the device, %d processes ended; %d chunks tried again\n", made.resets, made.ended, p.Stats().Retries)
	if t.right == 0 && t.wrong == 0 {
		return fmt.Errorf("none of %d uploads was answered: %w", t.honest, errDevice)
	}
	if t.wrong > 0 {
		return fmt.Errorf("%w: %d right, %d refused, %d wrong: %v", errWrong, t.right, t.honest, t.wrong, m.Errors)
	}
	_, err := fmt.Fprintf(w, "verified: %d answers are right, %d are an honest error, none is wrong\n", t.right, t.honest)
	return err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// heap is the memory of objects, living and dead.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// troubles counts what happened to the device.
type troubles struct{ resets, ended int }

// makeTrouble resets the device and ends processes on it in turn until ctx ends.
func makeTrouble(ctx context.Context, dev *nfcomms.Device, each time.Duration) (t troubles) {
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return t
		case <-tick.C:
		}
		if t.resets <= t.ended {
			if dev.Reset(ctx) == nil {
				t.resets++
			}
			continue
		}
		if endOne(ctx, dev) {
			t.ended++
		}
	}
}

// endOne ends the process that was started last. It reports whether there was one.
func endOne(ctx context.Context, dev *nfcomms.Device) bool {
	last, err := dev.Start(ctx, nfcomms.Program{Name: "sink", Targets: 1})
	if err != nil || dev.Stop(ctx, last.ID) != nil {
		return false
	}
	for id := last.ID - 1; id+2*processes > last.ID; id-- { // some may have ended before
		if dev.Stop(ctx, id) == nil {
			return true
		}
	}
	return false
}
