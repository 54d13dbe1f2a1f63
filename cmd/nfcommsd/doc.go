// Command nfcommsd opens devices and serves their control plane.
//
//	nfcommsd                                  one in-process device on the default socket
//	nfcommsd --config /etc/nfcomms/nfcommsd.yaml
//	nfcommsd --config FILE --check            say what is wrong with it, and exit
//	nfcommsd --config FILE --print-config     print what it would run with, and exit
//
// gRPC is on a UNIX socket, and on TCP if configured. On the socket the kernel reports the user of
// a client; on TCP both sides show certificates. HTTP, if configured, has /metrics, /healthz
// and /readyz. A device that cannot be opened does not keep the others from
// being served: health says so, and it is tried again.
//
// SIGTERM and SIGINT let running calls end, for drain.timeout at most; a second
// one does not wait. SIGHUP reads the configuration again: devices, roles, log
// level and certificates change in place, and a line in the log names what needs
// a restart. Under systemd it reports when it is ready, reloading and stopping,
// answers the watchdog while devices answer it, and takes sockets named "control"
// and "metrics".
//
// Exit codes: 0 after a signal, 1 if it could not start or continue, 2 for a
// configuration that makes no sense.
//
// docs/operations.md describes how to run it.
package main
