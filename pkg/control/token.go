package control

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// tokenKind is what a token is for, so that one does not pass for another.
type tokenKind byte

const (
	pageOfDevices tokenKind = iota + 1
	pageOfChannels
	pageOfPrograms
	pageOfEvents
	watchOfDevices
	watchOfChannels
	watchOfEvents
	pageOfProcesses
	pageOfGroups
	pageOfNodes
)

var tokenText = base64.RawURLEncoding

// sum guards a token against accidents and other uses, not against malice: a
// token gives no right that its caller lacks.
func (k tokenKind) sum(scope string, payload []byte) uint32 {
	h := crc32.NewIEEE()
	h.Write([]byte{byte(k)})
	h.Write([]byte(scope))
	h.Write([]byte{0})
	h.Write(payload)
	return h.Sum32()
}

// seal makes a token for a list or watch of one scope.
func (k tokenKind) seal(scope string, payload []byte) string {
	return tokenText.EncodeToString(append(binary.BigEndian.AppendUint32(nil, k.sum(scope, payload)), payload...))
}

// open returns what seal put in; false if the token is not of that kind and
// scope.
func (k tokenKind) open(scope, token string) ([]byte, bool) {
	raw, err := tokenText.DecodeString(token)
	if err != nil || len(raw) < 4 {
		return nil, false
	}
	payload := raw[4:]
	return payload, token == k.seal(scope, payload) // to the letter: decoding passes over line ends
}

// session names one life of a server.
type session [8]byte

// resumeToken is the position of a watch.
func (s session) resumeToken(k tokenKind, scope string, revision int64) string {
	return k.seal(scope, binary.BigEndian.AppendUint64(s[:len(s):len(s)], uint64(revision)))
}

// revision reads a resume token.
func (s session) revision(k tokenKind, scope, token string) (int64, error) {
	raw, ok := k.open(scope, token)
	if !ok || len(raw) != len(s)+8 {
		return 0, &FieldError{Field: "resume_token", Err: ErrResumeToken}
	}
	if session(raw[:len(s)]) != s {
		return 0, &FieldError{Field: "resume_token", Err: ErrResumeExpired}
	}
	return int64(binary.BigEndian.Uint64(raw[len(s):])), nil
}
