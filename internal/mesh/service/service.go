package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/mesh"
)

// addressesMost is how many addresses of a host are tried.
const addressesMost = 8

// Errors of names and of what a name server says of them.
var (
	// ErrName means that a text is no service, or no name of a process of one.
	ErrName = errors.New("not a name of a service")
	// ErrRecords means that the records of a service do not say where a node is.
	ErrRecords = errors.New("no use of its records")
)

// Service is where the nodes of a fabric are found: node i is the host PREFIX-i.DOMAIN of the records
// _PORT._tcp.DOMAIN, or _udp for links over UDP. Records are asked for each time that a node is dialed:
// one that moved is found where it is.
type Service struct {
	records string // _PORT._tcp.DOMAIN
	domain  string
	prefix  string // of names, "nf-" of "nf-0"
	udp     bool
	// Resolver asks the name server; nil: that of the machine.
	Resolver *net.Resolver
}

var (
	serviceName = regexp.MustCompile(`^_[a-z0-9]([-a-z0-9]*[a-z0-9])?\._(tcp|udp)(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)
	processName = regexp.MustCompile(`^([a-z0-9][-a-z0-9]{0,61}-)(0|[1-9][0-9]{0,4})$`)
)

// Parse reads the name of a service, "_links._tcp.nf.default.svc.cluster.local", and that of the
// process in it, "nf-0", and returns the service with the index of the process's node. The error is
// ErrName.
func Parse(service, process string) (*Service, int, error) {
	service = strings.TrimSuffix(service, ".")
	if !serviceName.MatchString(service) || len(service) > 253 {
		return nil, 0, fmt.Errorf("%w: %q: want _PORT._tcp.DOMAIN or _PORT._udp.DOMAIN", ErrName, service)
	}
	name := processName.FindStringSubmatch(process)
	if name == nil {
		return nil, 0, fmt.Errorf("%w: %q: want a name that ends with the number of its node, as nf-0", ErrName, process)
	}
	index, err := strconv.Atoi(name[2])
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %q: %w", ErrName, process, err)
	}
	parts := strings.SplitN(service, ".", 3)
	return &Service{records: service, domain: parts[2], prefix: name[1], udp: parts[1] == "_udp"}, index, nil
}

// Host is the name of the host of a node, which its certificate has to be good for.
func (s *Service) Host(node int) string {
	return s.prefix + strconv.Itoa(node) + "." + s.domain
}

// Dial is a [mesh.Dialer] whose addresses are those of Host. It asks where that is, and tries each
// address by another dialer, which takes those of [bridge.ParseFabricAddress].
func (s *Service) Dial(by mesh.Dialer) mesh.Dialer {
	return func(ctx context.Context, host string, config *tls.Config) (mesh.Peer, error) {
		all, err := s.Lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		var failed []error
		for _, at := range all {
			p, err := by(ctx, at, config)
			if err == nil || ctx.Err() != nil {
				return p, err
			}
			failed = append(failed, err)
		}
		return nil, errors.Join(failed...)
	}
}

// Lookup returns the addresses of a host of the service. The error wraps ErrRecords, or is that of the
// name server.
func (s *Service) Lookup(ctx context.Context, host string) ([]string, error) {
	r := cmp.Or(s.Resolver, net.DefaultResolver)
	_, records, err := r.LookupSRV(ctx, "", "", s.records+".")
	if err != nil && len(records) == 0 {
		return nil, err
	} // else some records are nonsense, and not of our host
	port, err := portOf(records, host)
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", s.records, err)
	}
	all, err := r.LookupHost(ctx, host+".")
	if err != nil {
		return nil, err
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) > addressesMost {
		return nil, fmt.Errorf("%w: %d addresses, at most %d", ErrRecords, len(all), addressesMost)
	}
	for i := range all {
		all[i] = net.JoinHostPort(all[i], strconv.Itoa(port))
		if s.udp {
			all[i] = bridge.MediumUDP.String() + "://" + all[i]
		}
	}
	return all, nil
}

// portOf returns the port of a host. Other hosts may have records, too.
func portOf(records []*net.SRV, host string) (port int, err error) {
	for _, r := range records {
		switch {
		case !strings.EqualFold(strings.TrimSuffix(r.Target, "."), host):
		case r.Port == 0, port != 0 && port != int(r.Port):
			return 0, fmt.Errorf("%w: ports %d and %d", ErrRecords, port, r.Port)
		default:
			port = int(r.Port)
		}
	}
	if port == 0 {
		return 0, fmt.Errorf("%w: none of its %d hosts", ErrRecords, len(records))
	}
	return port, nil
}
