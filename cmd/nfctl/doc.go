// Command nfctl shows and operates the devices of a control plane server: those
// of nfcommsd, of an application that embeds package control, or of one device
// that it opens itself.
//
//	nfctl list                 the devices
//	nfctl top                  what they do now
//	nfctl ping sim0            round trips to the firmware
//	nfctl send sim0 1 hello    one message to a target
//	nfctl doctor               what is wrong with this host, and how to mend it
//
// nfctl explain has every key of its output, docs/nfctl.md every exit code.
package main
