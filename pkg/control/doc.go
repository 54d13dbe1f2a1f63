// Package control lets remote clients see and operate the devices of a process:
// a gRPC server to embed, and a typed client.
//
//	srv := control.New(control.Options{})
//	err := srv.Attach("nic0", dev)      // a device of the application
//	gs := grpc.NewServer()
//	srv.Register(gs)                    // nfcomms.v1 and health v1
//
// The other side:
//
//	c, err := control.Dial(control.DefaultAddress)
//	d, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: "devices/nic0"})
//
// Errors keep their meaning on the way: errors.Is finds the sentinels of
// package nfcomms and of this package in what a client returns.
//
// Bulk data does not pass here. A remote client may send and receive messages
// of at most 56 bytes; for more use SendInd and ReceiveInd in the process
// that has the device open.
//
// docs/control.md describes the services, the errors and how to watch.
package control
