// Package nfcommsv1 holds the messages and services of nfcomms.v1, generated
// from the .proto files beside it with "make proto". Package control has the
// server and the client.
package nfcommsv1
