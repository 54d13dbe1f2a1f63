// Package spectest has the slots of devices verified in tests of back ends.
package spectest
