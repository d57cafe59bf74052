package asterisqueotel

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
)

// says adds a trace context to all calls.
func says(sent string) asterisque.Option {
	return asterisque.WithOutboundInterceptors(func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if err := c.SetTrace([]byte(sent)); err != nil {
			return err
		}
		return next(ctx, c)
	})
}

const (
	sampled   = parent + "\nvendor=1" // with the flag
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// acquaintance is the way in which a client and a server authenticate each other, and whether the
// client is proven.
type acquaintance struct {
	client asterisque.Option
	accept func(context.Context, asterisque.Peer) (*asterisque.Grant, error)
	tls    *tls.Config // of the server
	proven bool
}

func acquaintances(t *testing.T) map[string]acquaintance {
	a := testtls.NewAuthority(t)
	unverified := a.Server()
	unverified.ClientAuth = tls.RequireAnyClientCert
	grant := func(subject string) func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return &asterisque.Grant{Subject: subject}, nil
		}
	}
	unknown, known := asterisque.WithTLS(a.Client()), asterisque.WithTLS(a.Client(a.Issue("x", time.Hour)))
	return map[string]acquaintance{
		"a name of its own":         {client: asterisque.WithID("admin"), accept: grant("")},
		"a subject":                 {client: unknown, accept: grant("somebody"), proven: true},
		"TLS without a certificate": {client: unknown, accept: grant(""), tls: a.Server()},
		"an unverified certificate": {client: known, accept: grant(""), tls: unverified},
		"a verified certificate":    {client: known, accept: grant(""), tls: a.Server(), proven: true},
	}
}

func TestTrust_Sampling(t *testing.T) {
	for name, p := range acquaintances(t) {
		for _, own := range []struct {
			sampler sdktrace.Sampler
			samples bool
		}{{sdktrace.NeverSample(), false}, {sdktrace.AlwaysSample(), true}} {
			for _, sent := range []string{sampled, unsampled} {
				t.Run(name, func(t *testing.T) {
					b := newBackend(t, sdktrace.WithSampler(sdktrace.ParentBased(own.sampler)))
					here := asterisque.NewNode(p.client, says(sent))
					var handled trace.SpanContext
					svc := asterisque.NewService()
					surround.Handle(svc, func(ctx context.Context, s string) (string, error) {
						handled = trace.SpanContextFromContext(ctx)
						return s, nil
					})
					there := followed(Interceptor(b.opts...), asterisque.WithAccess(asterisque.Access{Accept: p.accept}), asterisque.WithService(svc))
					sess, _ := connectTLS(t, here, there, p.tls)
					_, err := surround.Call(t.Context(), sess, "x")
					require.NoError(t, err)
					here.Shutdown(t.Context())
					there.Shutdown(t.Context()) // the handler's span has ended

					theirs := trace.SpanContextFromContext(extract(t.Context(), []byte(sent)))
					want := own.samples
					if p.proven {
						want = theirs.IsSampled()
					}
					require.Equal(t, want, handled.IsSampled())
					require.Equal(t, p.proven, handled.TraceID() == theirs.TraceID())
					spans := b.spans.GetSpans()
					if !want {
						require.Empty(t, spans)
						return
					}
					require.Len(t, spans, 1)
					if p.proven {
						require.Equal(t, theirs.SpanID(), spans[0].Parent.SpanID())
						require.Empty(t, spans[0].Links)
						return
					}
					require.False(t, spans[0].Parent.IsValid(), "a trace of its own")
					require.Len(t, spans[0].Links, 1)
					link := spans[0].Links[0].SpanContext
					require.Equal(t, theirs.TraceID(), link.TraceID())
					require.Equal(t, theirs.SpanID(), link.SpanID())
					require.False(t, link.IsSampled(), "which a sampler that looks at links would follow")
					require.Empty(t, link.TraceState().String())
				})
			}
		}
	}
}

// A sampler by ratio decides by the trace id: with its own parent, the peer would choose.
func TestTrust_TraceID(t *testing.T) {
	low := "00-00000000000000010000000000000001-b7ad6b7169203331-01" // sampled at any ratio
	b := newBackend(t, sdktrace.WithSampler(sdktrace.TraceIDRatioBased(1e-9)))
	there := followed(Interceptor(b.opts...), asterisque.WithService(surrounding()))
	here := asterisque.NewNode(says(low))
	sess, _ := connect(t, here, there)
	for range 100 {
		_, err := surround.Call(t.Context(), sess, "x")
		require.NoError(t, err)
	}
	here.Shutdown(t.Context())
	there.Shutdown(t.Context())
	require.Empty(t, b.spans.GetSpans())
}

func TestTrust_Option(t *testing.T) {
	b := newBackend(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	var asked []string
	follow := Interceptor(append(b.opts, WithTrust(func(p asterisque.Peer) bool {
		asked = append(asked, p.ID)
		return p.ID == "friend"
	}))...)
	for _, id := range []string{"friend", "foe"} {
		here := asterisque.NewNode(asterisque.WithID(id), says(sampled))
		sess, _ := connect(t, here, followed(follow, asterisque.WithService(surrounding())))
		_, err := surround.Call(t.Context(), sess, "x")
		require.NoError(t, err)
	}
	require.Len(t, b.ended(t, 1), 1)
	require.Equal(t, []string{"friend", "foe"}, asked)
}
