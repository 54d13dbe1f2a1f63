package plugin

import (
	"fmt"
	"strconv"
	"strings"
)

// sharesMost bounds the shares of a device: the kubelet gets an id for each.
const sharesMost = 1024

// Shares is how many clients a device has room for; 0 gives it as a whole.
type Shares struct {
	// Default is that of a device that processes share, "shm:". A card is given as a whole.
	Default int
	// Of has those of devices by name.
	Of map[string]int
}

// ParseShares reads "8", the default, and "NAME=8".
func ParseShares(texts []string) (Shares, error) {
	s := Shares{Default: 8, Of: make(map[string]int)}
	for _, text := range texts {
		name, number, named := strings.Cut(text, "=")
		if !named {
			number = text
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > sharesMost || named && name == "" {
			return s, fmt.Errorf("shares %q: want N or NAME=N with N from 0, as a whole, to %d", text, sharesMost)
		}
		if named {
			s.Of[name] = n
		} else {
			s.Default = n
		}
	}
	return s, nil
}

// of returns the shares of a device.
func (s Shares) of(name, address string) int {
	if n, named := s.Of[name]; named {
		return n
	}
	if strings.HasPrefix(address, "shm:") {
		return s.Default
	}
	return 0
}
