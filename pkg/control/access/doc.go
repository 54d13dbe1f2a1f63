// Package access decides who may call what on the control plane.
//
// A caller is identified by its connection. On a UNIX socket it is the user and groups that the
// kernel vouches for (LocalCredentials), on TCP the certificate that it proved (TLS, 1.3 only, both
// sides). A Policy gives users, groups and certificates one of three roles, each of which includes
// the ones before it: viewer, operator, admin. Methods lists which role each method needs. A
// Authorizer joins the two as one pair of gRPC interceptors and denies what neither mentions.
//
//	policy := access.NewPolicy()
//	err := policy.Grant(access.Operator, "group:nfcomms", "uri:spiffe://example.org/ops")
//	…
//	authorizer := access.NewAuthorizer(policy, access.Methods(), logger)
//	srv := grpc.NewServer(
//		grpc.Creds(access.LocalCredentials(access.Limits{Connections: 256, Work: 1 << 20})),
//		grpc.InTapHandle(authorizer.Tap),
//		grpc.ChainUnaryInterceptor(authorizer.Unary),
//		grpc.ChainStreamInterceptor(authorizer.Stream),
//	)
//
// Roles and certificates may change while connections are open: SetPolicy ends
// the streams that are no longer allowed, and new certificates count from the
// next handshake on.
package access
