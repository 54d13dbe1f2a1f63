// Package udp carries links between processes over UDP: each is a stream of a QUIC connection
// (RFC 9000), encrypted and with certificates of both sides. See docs/design/0080.
package udp
