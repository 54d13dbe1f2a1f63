package vfiouser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"syscall"
	"time"
)

const (
	majorVersion = 0
	minorVersion = 1
)

// capabilities are those of a client that the server heeds. Others are for
// things it does not do.
type capabilities struct {
	MaxDataXferSize *uint64 `json:"max_data_xfer_size"`
	MaxMsgFDs       *uint64 `json:"max_msg_fds"`
}

// answers are what the server says of itself, the fullest first: a client has
// room for as much as it said itself.
var answers = []string{
	fmt.Sprintf(`{"capabilities":{"max_msg_fds":%d,"max_data_xfer_size":%d,"max_dma_maps":%d,"write_multiple":false}}`,
		MaxFiles, MaxTransfer, MaxMaps),
	fmt.Sprintf(`{"capabilities":{"max_msg_fds":%d,"max_data_xfer_size":%d}}`, MaxFiles, MaxTransfer),
	fmt.Sprintf(`{"capabilities":{"max_msg_fds":%d}}`, MaxFiles),
	"{}",
}

// version agrees on the version: once, before anything else.
func (c *Conn) version(m *message) ([]byte, error) {
	if c.greeted {
		return nil, fmt.Errorf("second version message: %w", syscall.EINVAL)
	}
	r := reader{b: m.payload}
	major, minor := r.u16(), r.u16()
	if r.short {
		return nil, errShort
	}
	if major != majorVersion {
		return nil, fmt.Errorf("client has version %d.%d, server %d.%d: %w",
			major, minor, majorVersion, minorVersion, syscall.EPROTONOSUPPORT)
	}
	if err := c.adopt(r.b); err != nil {
		return nil, err
	}
	c.greeted = true
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	out := order.AppendUint16(nil, majorVersion)
	out = order.AppendUint16(out, min(minor, minorVersion))
	for _, a := range answers {
		if len(a) < len(r.b) { // with its NUL it is no longer
			return append(append(out, a...), 0), nil
		}
	}
	return out, nil
}

// adopt takes over what the client can do.
func (c *Conn) adopt(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	text, ok := bytes.CutSuffix(data, []byte{0})
	if !ok || bytes.IndexByte(text, 0) >= 0 {
		return fmt.Errorf("version data is no string: %w", syscall.EINVAL)
	}
	var v struct {
		Capabilities capabilities `json:"capabilities"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("version data: %w: %w", err, syscall.EINVAL)
	}
	most := v.Capabilities.MaxDataXferSize
	if most == nil {
		return nil
	}
	if *most == 0 {
		return fmt.Errorf("version data: max_data_xfer_size 0: %w", syscall.EINVAL)
	}
	c.mu.Lock()
	c.chunk = min(*most, MaxTransfer)
	c.mu.Unlock()
	return nil
}
