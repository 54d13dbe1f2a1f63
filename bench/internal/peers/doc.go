// Package peers compares calls with memcpy, Go channels, pipes, UNIX sockets, gRPC and libraries in C.
package peers
