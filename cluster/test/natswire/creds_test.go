package natswire_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// operated configures a server to trust an operator with one account, and returns a creds file of a
// user of that account.
func operated(t *testing.T) (trust func(o *server.Options), creds string) {
	operator, err := nkeys.CreateOperator()
	require.NoError(t, err)
	account, err := nkeys.CreateAccount()
	require.NoError(t, err)
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	accountClaim := jwt.NewAccountClaims(public(t, account))
	resolver := &server.MemAccResolver{}
	require.NoError(t, resolver.Store(public(t, account), encoded(t, accountClaim, operator)))
	trust = func(o *server.Options) {
		o.TrustedKeys, o.AccountResolver = []string{public(t, operator)}, resolver
	}
	seed, err := user.Seed()
	require.NoError(t, err)
	config, err := jwt.FormatUserConfig(encoded(t, jwt.NewUserClaims(public(t, user)), account), seed)
	require.NoError(t, err)
	creds = filepath.Join(t.TempDir(), "me.creds")
	require.NoError(t, os.WriteFile(creds, config, 0o600))
	return trust, creds
}

func public(t *testing.T, key nkeys.KeyPair) string {
	t.Helper()
	text, err := key.PublicKey()
	require.NoError(t, err)
	return text
}

func encoded(t *testing.T, claims jwt.Claims, by nkeys.KeyPair) string {
	t.Helper()
	token, err := claims.Encode(by)
	require.NoError(t, err)
	return token
}

// A creds file authenticates a program.
func TestTransport_Creds(t *testing.T) {
	trust, creds := operated(t)
	s := broker(t, trust)
	u, err := url.Parse(s.ClientURL() + "/name")
	require.NoError(t, err)
	_, err = (natswire.Transport{}).Listen(t.Context(), u, wire.Options{})
	require.ErrorIs(t, err, nats.ErrAuthorization, "without credentials")

	own := natswire.Transport{Options: []nats.Option{nats.UserCredentials(creds)}}
	ln, err := own.Listen(t.Context(), u, wire.Options{})
	require.NoError(t, err)
	listening(t, ln)
	here, err := own.Dial(t.Context(), u, wire.Options{})
	require.NoError(t, err)
	defer here.Close()
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	carries(t, here, there, "in")
}
