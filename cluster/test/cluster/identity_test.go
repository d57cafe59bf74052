package cluster_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
)

// proving returns a Config of a node with a certificate for an identity.
func proving(a *testtls.Authority, cfg cluster.Config, identity string) cluster.Config {
	cfg.TLS = &tls.Config{
		Certificates: []tls.Certificate{a.Issue(identity, time.Hour)},
		RootCAs:      a.Pool(), ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	return cfg
}

func TestIdentity_Proof(t *testing.T) {
	t.Parallel()
	a := testtls.NewAuthority(t)
	for how, secure := range map[string]func(cluster.Config) cluster.Config{
		"directly":     func(cfg cluster.Config) cluster.Config { cfg.Listen = []string{"tls://127.0.0.1:0"}; return cfg },
		"through NATS": func(cfg cluster.Config) cluster.Config { return cfg },
	} {
		t.Run(how, func(t *testing.T) {
			b := natstest.StartServer(t, broker.Config{})
			joined(t, secure(proving(a, config(b, "orders", "good"), "orders")))
			joined(t, secure(proving(a, config(b, "orders", "bad"), "rogue")))
			c := joined(t, proving(a, config(b, "", ""), "client"))
			p := callerOf(t, c, "orders")
			answering(t, p, "good")
			_, err := ownID.Call(t.Context(), p.At("bad"), struct{}{}, asterisque.WithTTL(time.Second))
			require.ErrorIs(t, err, asterisque.ErrExpired)
			require.Equal(t, "bad", p.Servers()[0].URL)
			require.ErrorContains(t, p.Servers()[0].Outage, "certificate is valid for localhost, rogue, not orders")
			answering(t, callerOf(t, c, "orders", cluster.WithIdentity("rogue")), "bad")
		})
	}
}

func TestIdentity_ResumeThroughNATS(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		a, dir := testtls.NewAuthority(t), t.TempDir()
		b := natstest.StartServer(t, broker.Config{Dir: dir})
		resume := asterisque.WithResume(asterisque.Resume{For: time.Minute})
		joined(t, proving(a, config(b, "orders", "a"), "orders"), resume)
		c := joined(t, proving(a, config(b, "", ""), "client"), resume)
		p := callerOf(t, c, "orders")
		call, err := hold.Open(t.Context(), p, struct{}{})
		require.NoError(t, err)
		_, err = call.Recv(t.Context())
		require.NoError(t, err)
		again := natstest.Restarted(b, dir)
		require.NoError(t, b.Close())
		natstest.StartServer(t, again)
		require.NoError(t, call.Send(t.Context(), struct{}{}))
		_, err = call.Result(t.Context())
		require.NoError(t, err)
	})
}
