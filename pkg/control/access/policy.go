package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"google.golang.org/grpc/credentials"
)

// ErrUnknownName: this machine knows no user or group of that name, or cannot
// say. A directory service may know it later.
var ErrUnknownName = errors.New("unknown name")

// Policy maps callers to their roles. Fill it with Grant, then share it: its
// other methods are safe for concurrent use.
type Policy struct {
	users, groups map[uint32]Role
	uris, names   map[string]Role
	local         Role // the highest of a Local
}

// NewPolicy returns a policy that gives nobody a role.
func NewPolicy() *Policy {
	return &Policy{
		users: make(map[uint32]Role), groups: make(map[uint32]Role),
		uris: make(map[string]Role), names: make(map[string]Role), local: Admin,
	}
}

// LimitLocal sets the highest role that a user or group has on a UNIX socket,
// whatever was granted. It is Admin unless set. Where the socket is handed to
// containers, whose root is the host's without a user namespace, Operator or
// Viewer leaves admins to certificates.
func (p *Policy) LimitLocal(most Role) { p.local = most }

// Grant gives a role to subjects. A subject that has several roles holds the
// highest. The forms of a subject are
//
//	user:NAME   uid:NUMBER    a user, on a UNIX socket
//	group:NAME  gid:NUMBER    the members of a group, on a UNIX socket
//	uri:URI                   a certificate with this URI, such as a SPIFFE id
//	cn:NAME                   a certificate with this common name
//
// Names of users and groups are looked up once, here; one that is not known is
// ErrUnknownName. An unknown form or role is an error as well. After an error the
// policy holds the subjects before it.
func (p *Policy) Grant(role Role, subjects ...string) error {
	if role < Viewer || role > Admin {
		return fmt.Errorf("%v cannot be granted", role)
	}
	for _, s := range subjects {
		if err := p.grant(role, s); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) grant(role Role, subject string) error {
	form, value, _ := strings.Cut(subject, ":")
	if value == "" {
		return fmt.Errorf("subject %q: want user:NAME, uid:NUMBER, group:NAME, gid:NUMBER, uri:URI or cn:NAME", subject)
	}
	switch form {
	case "uri":
		raise(p.uris, value, role)
		return nil
	case "cn":
		raise(p.names, value, role)
		return nil
	}
	ids := p.users
	if form == "group" || form == "gid" {
		ids = p.groups
	}
	id, err := numberOf(form, value)
	if err != nil {
		return fmt.Errorf("subject %q: %w", subject, err)
	}
	raise(ids, id, role)
	return nil
}

func raise[K comparable](m map[K]Role, key K, role Role) {
	m[key] = max(m[key], role)
}

// numberOf returns the id behind a user or group subject.
func numberOf(form, value string) (uint32, error) {
	switch form {
	case "user":
		u, err := user.Lookup(value)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrUnknownName, err)
		}
		value = u.Uid
	case "group":
		g, err := user.LookupGroup(value)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrUnknownName, err)
		}
		value = g.Gid
	case "uid", "gid":
	default:
		return 0, fmt.Errorf("form %q is not one of user, uid, group, gid, uri, cn", form)
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number below 2^32", value)
	}
	return uint32(n), nil
}

// RoleOf returns the highest role of a caller. It is None if it has none, or if it is neither a
// Local nor a Remote, nor credentials.TLSInfo of a client whose certificate was verified.
func (p *Policy) RoleOf(info credentials.AuthInfo) Role {
	switch info := info.(type) {
	case Local:
		role := max(p.users[info.UID], p.groups[info.GID])
		for _, g := range info.Groups {
			role = max(role, p.groups[g])
		}
		return min(role, p.local)
	case Remote:
		return p.RoleOf(info.TLSInfo)
	case credentials.TLSInfo:
		if leaf := verified(info); leaf != nil {
			return p.roleOfCertificate(leaf)
		}
	}
	return None
}

func (p *Policy) roleOfCertificate(leaf *x509.Certificate) Role {
	role := None
	for _, u := range leaf.URIs {
		role = max(role, p.uris[u.String()])
	}
	if leaf.Subject.CommonName != "" {
		role = max(role, p.names[leaf.Subject.CommonName])
	}
	return role
}

// verified returns the certificate that a TLS caller proved, nil if it showed
// none or one that was not checked.
func verified(info credentials.TLSInfo) *x509.Certificate {
	if chains := info.State.VerifiedChains; len(chains) > 0 && len(chains[0]) > 0 {
		return chains[0][0]
	}
	return nil
}
