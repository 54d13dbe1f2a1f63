package bridge

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// givenPrefix begins the variables by which containers are given devices: NFCOMMS_DEVICE_NIC0
// has the address of the device nic0. Package internal/cdi writes them.
const givenPrefix = "NFCOMMS_DEVICE_"

// givenScheme is that of addresses that a variable replaces.
const givenScheme = "env"

// given returns the addresses in an environment, in the order of their variables.
func given(environ []string) (variables, addresses []string) {
	environ = slices.Sorted(slices.Values(environ))
	for _, e := range environ {
		if name, address, _ := strings.Cut(e, "="); strings.HasPrefix(name, givenPrefix) && address != "" {
			variables, addresses = append(variables, name), append(addresses, address)
		}
	}
	return variables, addresses
}

// variableOf returns the variable of a device: letters are upper case, and "_" replaces all else.
func variableOf(device string) string {
	return givenPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, device)
}

// resolve reads an address. "env:" becomes the first address that the environment has, and
// "env:NAME" that of the device of this name.
func resolve(address string) (Address, error) {
	a, err := ParseAddress(address)
	if err != nil || a.Scheme != givenScheme {
		return a, err
	}
	if err := a.Only(); err != nil {
		return a, err
	}
	variables, addresses := given(os.Environ())
	at := 0
	if a.Path != "" {
		at = slices.Index(variables, variableOf(a.Path))
	}
	switch {
	case len(addresses) == 0:
		return a, fmt.Errorf("no variable %s…: this process was given no device: %w", givenPrefix, fs.ErrNotExist)
	case at < 0:
		return a, fmt.Errorf("no variable %s, only %s: %w", variableOf(a.Path), strings.Join(variables, ", "), fs.ErrNotExist)
	}
	a, err = ParseAddress(addresses[at])
	if err == nil && a.Scheme == givenScheme {
		err = fmt.Errorf("scheme %q: %w", a.Scheme, ErrScheme)
	}
	if err != nil {
		return a, fmt.Errorf("variable %s: %w", variables[at], err)
	}
	return a, nil
}

// listGiven lists the devices that the environment has, each with its own address.
func listGiven() (found []Found) {
	_, addresses := given(os.Environ())
	for _, address := range addresses {
		a, err := ParseAddress(address)
		if err == nil {
			err = CheckAddress(address)
		}
		found = append(found, Found{Address: address, Driver: a.Scheme, Err: err})
	}
	return found
}
