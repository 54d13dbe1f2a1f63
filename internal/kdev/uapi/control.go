package uapi

import "unsafe"

// Payload is what an operation or a completion carries.
type Payload = [PayloadSize]byte

// payloads are the structures of OpControl, each of which fills a payload.
type payloads interface {
	RequestStart | RequestProcess | RequestLoad | RequestProgram | RequestMemory
}

// Pack returns a structure of OpControl as a payload.
func Pack[T payloads](v T) Payload { return *(*Payload)(unsafe.Pointer(&v)) }

// Unpack returns the structure of a payload of OpControl.
func Unpack[T payloads](p *Payload) (v T) {
	*(*Payload)(unsafe.Pointer(&v)) = *p
	return v
}

// Request returns what a payload of OpControl asks for: ControlStart and others.
func Request(p *Payload) uint16 { return Unpack[RequestProcess](p).Request }

// Status returns the status of an answer.
func Status(p *Payload) uint16 { return Unpack[RequestProcess](p).Status }

const (
	_ = uint(unsafe.Sizeof(RequestStart{}) - PayloadSize)
	_ = uint(unsafe.Sizeof(RequestProcess{}) - PayloadSize)
	_ = uint(unsafe.Sizeof(RequestLoad{}) - PayloadSize)
	_ = uint(unsafe.Sizeof(RequestProgram{}) - PayloadSize)
	_ = uint(unsafe.Sizeof(RequestMemory{}) - PayloadSize)
)
