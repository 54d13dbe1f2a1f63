// Command vmtest boots virtual machines that test the kernel module with an
// emulated device.
//
//	vmtest list                      what there is to run
//	vmtest run [flags] [JOB…]        run jobs, or all of a group, and print what
//	                                 happened as go test -json does
//	vmtest exec [flags] FILE [ARG…]  run one static program in a guest; a test
//	                                 binary too: go test -exec "bin/vmtest exec"
//	vmtest demo [flags]              move files through the device, in a guest
//	vmtest shell [flags]             an interactive shell in a guest
//
// The tables of jobs.go say which jobs there are; docs/testing.md says how to
// add one. Everything but Go, gcc, make and apt is obtained, once, into .cache.
// Exit codes: 0 all passed, 1 something failed, 2 bad usage.
package main
