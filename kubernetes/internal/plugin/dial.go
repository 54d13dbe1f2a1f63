package plugin

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// reconnect has connections made again within two seconds.
var reconnect = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: retryFirst, Multiplier: 1.6, Jitter: 0.2, MaxDelay: retryMost}, MinConnectTimeout: retryMost,
})

// Dial returns a client of the daemon that connects again within two seconds, and finds one that
// stands still within half a minute.
func Dial(address string) (*control.Client, error) {
	return control.Dial(address, reconnect, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}))
}
