package exchange_test

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

func secure(c *tls.Config) []asterisque.Option {
	return []asterisque.Option{asterisque.WithTLS(c)}
}

func wireTLS(c *tls.Config) wire.Options { return wire.Options{TLS: c} }

// credentials returns options by which an exchange trusts every identity, and by which a node
// presents one.
func credentials(identity string) []asterisque.Option {
	return []asterisque.Option{asterisque.WithAccess(asterisque.Access{
		PlainCredentials: true,
		Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			return &asterisque.Grant{Subject: string(p.Credential)}, nil
		},
		Credential: func(context.Context, asterisque.Peer) ([]byte, error) { return []byte(identity), nil },
	})}
}

// being returns a Config of a node that proves an identity with a credential.
func being(url, identity, id string) agent.Config {
	return agent.Config{Exchange: []string{url}, Name: identity, ID: id, Options: credentials(identity)}
}

func TestPolicy_Allows(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Options: credentials(""), Policy: []exchange.Rule{{From: "shop", To: "orders"}}})
	shop, orders, other := join(t, being(url, "shop", "s")), join(t, being(url, "orders", "o")), join(t, being(url, "other", "x"))
	require.Equal(t, "orders", orders.Identity())
	require.Equal(t, "o", ask(t, callerOf(t, shop, "orders")))
	for _, c := range []struct {
		from *agent.Agent
		to   string
	}{{orders, "shop"}, {other, "orders"}, {shop, "other"}} {
		_, err := whoami.Call(soon(t), callerOf(t, c.from, c.to), struct{}{}, asterisque.WithFailFast())
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		seen, err := c.from.Members(soon(t), c.to)
		require.NoError(t, err)
		require.Empty(t, seen)
	}
	require.Equal(t, 1, x.Stats().Sessions)
}

func TestPolicy_Empty(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{})
	a := joined(t, url, "shop", "a")
	joined(t, url, "orders", "b")
	seen, err := a.Members(soon(t), "orders")
	require.NoError(t, err)
	require.Empty(t, seen)
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	for _, name := range []string{"orders", "nobody"} {
		_, err := dial(t, s, name, "b")
		require.ErrorIs(t, err, relayproto.ErrNoMember, "a forbidden node looks like an absent one")
	}
}

func TestPolicy_BadRule(t *testing.T) {
	t.Parallel()
	for _, r := range []exchange.Rule{{}, {From: "a"}, {To: "a"}, {From: "a*", To: "b"}, {From: "a", To: " b"}} {
		_, err := exchange.New(exchange.Config{Policy: []exchange.Rule{{From: "a", To: "b"}, r}})
		require.ErrorContains(t, err, "Config.Policy[1], "+r.String())
	}
}

func TestIdentity_Certificate(t *testing.T) {
	t.Parallel()
	ca := testtls.NewAuthority(t)
	server := ca.Server()
	server.Certificates = []tls.Certificate{ca.Issue("127.0.0.1", time.Hour)}
	_, url := startedAt(t, exchange.Config{Policy: []exchange.Rule{{From: "shop", To: "orders"}}}, "tls://127.0.0.1:0", wireTLS(server))
	shop := join(t, agent.Config{Exchange: []string{url}, Name: "shop", ID: "s", TLS: ca.Client(ca.Issue("shop", time.Hour))})
	require.Equal(t, "shop", shop.Identity())
	printer := join(t, agent.Config{
		Exchange: []string{url}, Name: "printer", ID: "p", Identity: "orders", TLS: ca.Client(ca.Issue("orders", time.Hour)),
	})
	require.Equal(t, "orders", printer.Identity())
	require.Equal(t, "p", ask(t, callerOf(t, shop, "printer", agent.WithIdentity("orders"))))
	none := join(t, agent.Config{Exchange: []string{url}, Name: "shop2", ID: "n", TLS: ca.Client(ca.Issue("shop", time.Hour))})
	require.Empty(t, none.Identity(), "its certificate is not for its name, and it claims nothing")
}

func TestIdentity_Unproved(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Options: credentials(""), Policy: everybody})
	cfg := being(url, "shop", "s")
	cfg.Identity = "orders"
	_, err := agent.Join(soon(t), cfg)
	require.ErrorIs(t, err, agent.ErrUnproved)
	_, bare := started(t, exchange.Config{Policy: everybody})
	quickest := time.Hour
	for range 5 {
		begin := time.Now()
		_, err = agent.Join(soon(t), agent.Config{Exchange: []string{bare}, Name: "orders", Identity: "orders"})
		require.ErrorIs(t, err, agent.ErrUnproved)
		quickest = min(quickest, time.Since(begin))
	}
	require.Less(t, quickest, time.Second, "the end of its session does not block")
}

func TestIdentity_Unprintable(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Options: credentials(""), Policy: everybody})
	for _, granted := range []string{"\xff", "a\x00b", "a\n", strings.Repeat("a", 256)} {
		cfg := being(url, "orders", "o")
		cfg.Options = credentials(granted)
		_, err := agent.Join(soon(t), cfg)
		require.ErrorIs(t, err, agent.ErrUnproved)
		require.ErrorContains(t, err, "the granted Subject is no identity")
	}
}

func TestIdentity_Rejected(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody, Options: []asterisque.Option{asterisque.WithAccess(asterisque.Access{
		Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return nil, asterisque.ErrUnauthorized.Withf("strangers have to stay outside")
		},
	})}})
	_, err := agent.Join(soon(t), agent.Config{Exchange: []string{url}, Name: "orders"})
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	require.ErrorContains(t, err, "strangers have to stay outside")
}

func TestIdentity_OnePerName(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Options: credentials(""), Policy: everybody})
	cfg := being(url, "rogue", "r")
	cfg.Name, cfg.Options = "orders", credentials("")
	squatter := join(t, cfg)
	join(t, being(url, "orders", "o"))
	<-squatter.Done()
	require.ErrorIs(t, squatter.Err(), agent.ErrNameTaken, "it has proved nothing, and makes way")
	cfg.Options = credentials("rogue")
	_, err := agent.Join(soon(t), cfg)
	require.ErrorIs(t, err, agent.ErrNameTaken)
}

func TestIdentity_RightToName(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Options: credentials(""), Policy: everybody})
	cfg := being(url, "rogue", "r")
	cfg.Name = "orders"
	squatter := join(t, cfg)
	join(t, being(url, "orders", "o"))
	<-squatter.Done()
	require.ErrorIs(t, squatter.Err(), agent.ErrNameTaken)
	cfg = being(url, "shop", "s")
	cfg.Name = "printer"
	join(t, cfg)
	cfg = being(url, "rogue", "r")
	cfg.Name = "printer"
	_, err := agent.Join(soon(t), cfg)
	require.ErrorIs(t, err, agent.ErrNameTaken, "the first of two other identities has it")
}

func TestIdentity_ReplacesNode(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Options: credentials(""), Policy: everybody})
	first := join(t, being(url, "orders", "o"))
	join(t, being(url, "orders", "o"))
	<-first.Done()
	require.ErrorIs(t, first.Err(), agent.ErrReplaced)
	require.Equal(t, 1, x.Stats().Names)
	cfg := being(url, "rogue", "o")
	cfg.Name = "orders"
	_, err := agent.Join(soon(t), cfg)
	require.ErrorIs(t, err, agent.ErrNameTaken)
}

func TestIdentity_KnownToPeer(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Options: credentials(""), Policy: everybody})
	a := join(t, being(url, "shop", "s"))
	from := asterisque.Func[struct{}, string](9, "from")
	svc := asterisque.NewService()
	from.Handle(svc, func(ctx context.Context, _ struct{}) (string, error) {
		addr := asterisque.SessionOf(ctx).Peer().RemoteAddr.(agent.Addr)
		return addr.String() + " is " + addr.Identity, nil
	})
	cfg := being(url, "orders", "o")
	cfg.Service = svc
	join(t, cfg)
	got, err := from.Call(soon(t), callerOf(t, a, "orders"), struct{}{})
	require.NoError(t, err)
	require.Equal(t, "shop/s is shop", got)
}
