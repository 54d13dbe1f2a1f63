// Command guest is the first and only process of a test machine: it mounts what
// programs expect, loads the modules of its plan, runs the programs one after
// the other, reports to the host over a serial port, and ends the machine.
package main
