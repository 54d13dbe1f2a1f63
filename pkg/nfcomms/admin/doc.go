// Package admin reaches the registers and interrupts of a card past its driver: for administrators
// who bring up or examine a card. The device works on meanwhile.
package admin
