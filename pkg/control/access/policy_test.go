package access

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
)

// shown is a TLS caller whose certificate was verified.
func shown(t *testing.T, cn string, uris ...string) credentials.TLSInfo {
	t.Helper()
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: cn}}
	for _, s := range uris {
		u, err := url.Parse(s)
		require.NoError(t, err)
		leaf.URIs = append(leaf.URIs, u)
	}
	return credentials.TLSInfo{State: tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}},
	}}
}

func TestPolicyRoles(t *testing.T) {
	p := NewPolicy()
	require.NoError(t, p.Grant(Viewer, "uid:1000", "gid:50", "cn:scraper", "uri:spiffe://example.org/view"))
	require.NoError(t, p.Grant(Operator, "gid:60", "uri:spiffe://example.org/ops"))
	require.NoError(t, p.Grant(Admin, "user:root", "cn:chief"))
	require.NoError(t, p.Grant(Viewer, "user:root", "gid:60"), "a lower role takes nothing away")

	unverified := shown(t, "chief")
	unverified.State.VerifiedChains = nil
	for _, c := range []struct {
		name string
		who  credentials.AuthInfo
		want Role
	}{
		{"a user", Local{UID: 1000, GID: 1000}, Viewer},
		{"root by name", Local{}, Admin},
		{"its group", Local{UID: 7, GID: 60}, Operator},
		{"a supplementary group", Local{UID: 7, GID: 7, Groups: []uint32{1, 60, 2}}, Operator},
		{"the highest of several", Local{UID: 1000, GID: 50, Groups: []uint32{60}}, Operator},
		{"a uid that is a gid elsewhere", Local{UID: 60, GID: 7}, None},
		{"nobody", Local{UID: 65534, GID: 65534}, None},
		{"a common name", shown(t, "scraper"), Viewer},
		{"a URI", shown(t, "", "spiffe://example.org/ops"), Operator},
		{"a second URI", shown(t, "x", "spiffe://example.org/x", "spiffe://example.org/ops"), Operator},
		{"a URI in the common name", shown(t, "spiffe://example.org/ops"), None},
		{"a longer URI", shown(t, "", "spiffe://example.org/ops/x"), None},
		{"a name in another case", shown(t, "Chief"), None},
		{"no name at all", shown(t, ""), None},
		{"a certificate nobody checked", unverified, None},
		{"no credentials", nil, None},
	} {
		require.Equal(t, c.want, p.RoleOf(c.who), c.name)
	}
}

func TestPolicyRefuses(t *testing.T) {
	for subject, want := range map[string]string{
		"":                      "want user:NAME",
		"root":                  "want user:NAME",
		"uid:":                  "want user:NAME",
		"host:x":                `form "host" is not one of user, uid, group, gid, uri, cn`,
		"uid:-1":                "not a number",
		"uid:4294967296":        "not a number",
		"gid:0x10":              "not a number",
		"user:no-such-user-at":  "unknown user",
		"group:no-such-group-x": "unknown group",
	} {
		err := NewPolicy().Grant(Viewer, subject)
		require.ErrorContains(t, err, want, subject)
	}
	require.Error(t, NewPolicy().Grant(None, "uid:1"))
	require.Error(t, NewPolicy().Grant(Admin+1, "uid:1"))
}

func TestRoleNames(t *testing.T) {
	for r := Viewer; r <= Admin; r++ {
		got, err := ParseRole(r.String())
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	for _, name := range []string{"none", "", "Admin", "role(9)"} {
		_, err := ParseRole(name)
		require.ErrorContains(t, err, "viewer, operator, admin", name)
	}
	require.Equal(t, "role(9)", Role(9).String())
}

// TestLimitLocal: the highest role on a UNIX socket, of certificates not.
func TestLimitLocal(t *testing.T) {
	p := NewPolicy()
	require.NoError(t, p.Grant(Admin, "uid:0", "cn:chief"))
	require.NoError(t, p.Grant(Viewer, "uid:1"))
	require.Equal(t, Admin, p.RoleOf(Local{UID: 0}))
	p.LimitLocal(Operator)
	require.Equal(t, Operator, p.RoleOf(Local{UID: 0}))
	require.Equal(t, Viewer, p.RoleOf(Local{UID: 1}))
	require.Equal(t, None, p.RoleOf(Local{UID: 2}))
	require.Equal(t, Admin, p.RoleOf(shown(t, "chief")))
}
