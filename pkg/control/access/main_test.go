package access

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// probeEnv makes the test binary a client that asks for health once.
const probeEnv = "NFCOMMS_ACCESS_TEST_PROBE"

// watchdog bounds what would otherwise hang.
const watchdog = time.Minute

func TestMain(m *testing.M) {
	if address := os.Getenv(probeEnv); address != "" {
		os.Exit(probe(address))
	}
	goleak.VerifyTestMain(m)
}

// probe calls Check and prints the code of its answer.
func probe(address string) int {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer conn.Close()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	fmt.Println(status.Code(err), status.Convert(err).Message())
	return 0
}
