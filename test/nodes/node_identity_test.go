package nodes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/certificate"
)

// only returns the only session of n, and waits until it has begun.
func only(t testing.TB, n *asterisque.Node) *asterisque.Session {
	t.Helper()
	require.Eventually(t, func() bool { return len(n.Sessions()) == 1 }, testkit.Patience, time.Millisecond)
	return n.Sessions()[0]
}

// A peer gets the grant of its certificate.
func TestCertificate_Grant(t *testing.T) {
	ca := testtls.NewAuthority(t)
	admin := testkit.EchoService()
	whoami := asterisque.Func[struct{}, string](30, "who am I")
	whoami.Handle(admin, func(ctx context.Context, _ struct{}) (string, error) {
		return asterisque.SessionOf(ctx).Peer().Subject, nil
	})
	normal := priority.Normal
	there := testkit.NewNode(t, asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		cert := p.Certificate()
		if cert == nil {
			return nil, asterisque.ErrUnauthorized.Withf("show a certificate")
		}
		return &asterisque.Grant{
			Subject: cert.Subject.CommonName, Service: admin, MaxPriority: &normal,
			Inbound: limits.Limits{Soft: limits.Amount{Messages: 7}, Hard: limits.Amount{Messages: 9}},
		}, nil
	}}))
	url := testkit.Listen(t, there, "tls://127.0.0.1:0", wire.Options{TLS: ca.Server()})

	here := testkit.NewNode(t, asterisque.WithTLS(ca.Client(ca.Issue("admin", time.Hour))))
	s, err := here.Dial(testkit.Background, url)
	require.NoError(t, err)
	require.Equal(t, "server", s.Peer().Certificate().Subject.CommonName, "the dialling side knows whom it has reached")
	name, err := whoami.Call(testkit.Background, s, struct{}{})
	require.NoError(t, err)
	require.Equal(t, "admin", name)
	accepted := only(t, there)
	require.Equal(t, "admin", accepted.Peer().Subject)
	require.Equal(t, 7, accepted.Limits(asterisque.Inbound).Soft.Messages)

	nobody := testkit.NewNode(t, asterisque.WithTLS(ca.Client()))
	_, err = nobody.Dial(testkit.Background, url)
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	require.ErrorContains(t, err, "show a certificate")
}

// An invalid grant refuses the peer.
func TestIdentity_InvalidGrant(t *testing.T) {
	there := testkit.NewNode(t, asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Inbound: limits.Limits{Soft: limits.Amount{Messages: 9}, Hard: limits.Amount{Messages: 7}}}, nil
	}}))
	_, err := testkit.NewNode(t).Dial(testkit.Background, testkit.Listen(t, there, "tcp://127.0.0.1:0", wire.Options{}))
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.ErrorContains(t, err, "soft")
}

// A session ends when the certificate of its peer expires.
func TestCertificate_Expires(t *testing.T) {
	for name, outlive := range map[string]bool{"by default": false, "unless it may outlive it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := testtls.NewAuthority(t)
				opts := []asterisque.Option{asterisque.WithService(testkit.EchoService())}
				if outlive {
					opts = append(opts, asterisque.WithAccess(asterisque.Access{OutlivedCertificates: true}))
				}
				const life = 2 * time.Second
				begin := time.Now()
				a, b := testkit.TLSPipe(ca.Client(ca.Issue("brief", life)), ca.Server())
				s, _ := asterisquetest.ConnectOver(t, testkit.NewNode(t), testkit.NewNode(t, opts...), a, b)
				fakeclock.Sleep(life - 1)
				_, err := testkit.Echo.Call(testkit.Background, s, "still good")
				require.NoError(t, err)
				if outlive {
					fakeclock.Sleep(time.Hour / 2)
					_, err = testkit.Echo.Call(testkit.Background, s, "outlived")
					require.NoError(t, err)
					return
				}
				select {
				case <-s.Done():
				case <-time.After(time.Minute):
				}
				require.WithinDuration(t, begin.Add(life), time.Now(), time.Second)
				require.ErrorIs(t, s.Err(), asterisque.ErrUnauthorized)
				require.ErrorContains(t, s.Err(), "brief")
			})
		})
	}
}

// A credential is sent and accepted over TLS only.
func TestCredential_OnlyOverTLS(t *testing.T) {
	ca := testtls.NewAuthority(t)
	token := asterisque.WithAccess(asterisque.Access{Credential: func(context.Context, asterisque.Peer) ([]byte, error) { return []byte("open sesame"), nil }})
	check := asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		if string(p.Credential) != "open sesame" {
			return nil, asterisque.ErrUnauthorized.Withf("wrong word")
		}
		return &asterisque.Grant{Subject: "Ali Baba"}, nil
	}})
	plain := asterisque.WithAccess(asterisque.Access{PlainCredentials: true})
	long := asterisque.WithAccess(asterisque.Access{Credential: func(context.Context, asterisque.Peer) ([]byte, error) {
		return make([]byte, message.MaxCredential+1), nil
	}})
	none := asterisque.WithAccess(asterisque.Access{Credential: func(context.Context, asterisque.Peer) ([]byte, error) { return nil, testkit.ErrBroken }})
	for name, c := range map[string]struct {
		scheme      string
		here, there []asterisque.Option
		fails       string
	}{
		"over TLS":                        {scheme: "tls", here: []asterisque.Option{token}},
		"wrong":                           {scheme: "tls", fails: "wrong word"},
		"not sent in the open":            {scheme: "tcp", here: []asterisque.Option{token}, fails: "is not sent over a wire without encryption"},
		"not taken in the open":           {scheme: "tcp", here: []asterisque.Option{token, plain}, fails: "came over a wire without encryption"},
		"in the open where both allow it": {scheme: "tcp", here: []asterisque.Option{token, plain}, there: []asterisque.Option{plain}},
		"too long":                        {scheme: "tls", here: []asterisque.Option{long}, fails: "exceeds the limit of 4096"},
		"not to be had":                   {scheme: "tls", here: []asterisque.Option{none}, fails: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			there := testkit.NewNode(t, append(c.there, check)...)
			url := testkit.Listen(t, there, c.scheme+"://127.0.0.1:0", wire.Options{TLS: ca.Server()})
			s, err := testkit.NewNode(t, append(c.here, asterisque.WithTLS(ca.Client()))...).Dial(testkit.Background, url)
			if c.fails != "" {
				require.ErrorIs(t, err, asterisque.ErrUnauthorized)
				require.ErrorContains(t, err, c.fails)
				require.True(t, asterisque.Repeatable(err))
				return
			}
			require.NoError(t, err)
			require.NotNil(t, s)
			accepted := only(t, there)
			require.Equal(t, "Ali Baba", accepted.Peer().Subject)
			require.Empty(t, accepted.Peer().Credential, "it is not kept")
		})
	}
}

// Certificates are reloaded without dropping sessions.
func TestCertificate_Reloaded(t *testing.T) {
	ca := testtls.NewAuthority(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func(name string, age time.Duration) {
		c := ca.Issue(name, time.Hour)
		key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		require.NoError(t, err)
		for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
			require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
			at := time.Now().Add(-age)
			require.NoError(t, os.Chtimes(file, at, at))
		}
	}
	_, err := certificate.Load(certFile, keyFile)
	require.ErrorContains(t, err, "cert.pem")
	write("old", time.Hour)
	files, err := certificate.Load(certFile, keyFile)
	require.NoError(t, err)
	url := testkit.Listen(t, testkit.NewNode(t, asterisque.WithService(testkit.EchoService())), "tls://127.0.0.1:0", wire.Options{TLS: &tls.Config{GetCertificate: files.GetCertificate}})
	here := testkit.NewNode(t, asterisque.WithTLS(ca.Client()))
	dial := func() *asterisque.Session {
		s, err := here.Dial(testkit.Background, url)
		require.NoError(t, err)
		_, err = testkit.Echo.Call(testkit.Background, s, "x")
		require.NoError(t, err)
		return s
	}
	before := dial()
	write("new", 0)
	require.Equal(t, "new", dial().Peer().Certificate().Subject.CommonName)
	require.Equal(t, "old", before.Peer().Certificate().Subject.CommonName)
	_, err = testkit.Echo.Call(testkit.Background, before, "and goes on")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, []byte("half writ"), 0o600))
	require.Equal(t, "new", dial().Peer().Certificate().Subject.CommonName, "what cannot be read changes nothing")
}

// Too many half-open peers push out the oldest.
func TestAdmission_OldestPushedOut(t *testing.T) {
	there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithAdmission(asterisque.Admission{HalfOpen: 3}), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Minute}))
	url := testkit.Listen(t, there, "tcp://127.0.0.1:0", wire.Options{})
	var silent []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", url[len("tcp://"):])
		require.NoError(t, err)
		defer c.Close()
		silent = append(silent, c)
	}
	closed := make(chan int, len(silent))
	for i, c := range silent {
		go func() {
			c.Read(make([]byte, 1))
			closed <- i
		}()
	}
	first := []int{<-closed, <-closed}
	slices.Sort(first)
	require.Equal(t, []int{0, 1}, first)
	s, err := testkit.NewNode(t).Dial(testkit.Background, url)
	require.NoError(t, err)
	require.Equal(t, 2, <-closed)
	_, err = testkit.Echo.Call(testkit.Background, s, "an honest peer gets in")
	require.NoError(t, err)
}

// Sessions of one address are bounded.
func TestAdmission_PerAddress(t *testing.T) {
	there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithAdmission(asterisque.Admission{PerAddress: 2}))
	url := testkit.Listen(t, there, "tcp://127.0.0.1:0", wire.Options{})
	here := testkit.NewNode(t)
	first, err := here.Dial(testkit.Background, url)
	require.NoError(t, err)
	_, err = here.Dial(testkit.Background, url)
	require.NoError(t, err)
	_, err = here.Dial(testkit.Background, url)
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
	require.ErrorContains(t, err, "2 sessions from 127.0.0.1")
	first.Close()
	require.Eventually(t, func() bool { _, err := here.Dial(testkit.Background, url); return err == nil }, testkit.Patience, time.Millisecond)
}

// OnSession sees every session.
func TestOnSession_EverySession(t *testing.T) {
	began := make(chan *asterisque.Session, 2)
	see := asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(s *asterisque.Session) { began <- s }})
	dialled, accepted := testkit.ConnectNodes(t, testkit.NewNode(t, see), testkit.NewNode(t, see))
	require.ElementsMatch(t, []*asterisque.Session{dialled, accepted}, []*asterisque.Session{<-began, <-began})
}

// TestAdmission_BadPeers measures the cost of connections that are silent, that send one byte a
// second, and that are refused repeatedly, and their effect on an honest peer.
func TestAdmission_BadPeers(t *testing.T) {
	silent, slow, refused, calls := 100, 100, 10, 2_000
	if *testkit.Soak {
		silent, slow, refused, calls = 1000, 1000, 100, 50_000
	}
	there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithAdmission(asterisque.Admission{HalfOpen: -1}), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 30 * time.Second}),
		asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			if p.ID == "enemy" {
				return nil, errors.New("not you")
			}
			return nil, nil
		}}))
	url := testkit.Listen(t, there, "tcp://127.0.0.1:0", wire.Options{})
	s, err := testkit.NewNode(t).Dial(testkit.Background, url)
	require.NoError(t, err)
	p99 := func() time.Duration {
		times := make([]time.Duration, calls)
		for i := range times {
			begin := time.Now()
			_, err := testkit.Echo.Call(testkit.Background, s, "honest")
			require.NoError(t, err)
			times[i] = time.Since(begin)
		}
		slices.Sort(times)
		return times[len(times)*99/100]
	}
	quiet := p99()
	before := memoryInUse()
	ctx, stop := context.WithCancel(testkit.Background)
	var bad sync.WaitGroup
	defer bad.Wait()
	defer stop()
	hello := append([]byte{0, 0, 0, 40}, make([]byte, 40)...)
	for i := range silent + slow {
		c, err := net.Dial("tcp", url[len("tcp://"):])
		require.NoError(t, err)
		defer c.Close()
		if i < silent {
			continue
		}
		bad.Go(func() {
			for _, b := range hello {
				select {
				case <-time.After(time.Second):
					c.Write([]byte{b})
				case <-ctx.Done():
					return
				}
			}
		})
	}
	held := memoryInUse() - before
	enemy := testkit.NewNode(t, asterisque.WithID("enemy"))
	for range refused {
		bad.Go(func() {
			for ctx.Err() == nil {
				_, err := enemy.Dial(ctx, url)
				require.Error(t, err)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
		})
	}
	beside := p99()
	perPeer := held / int64(silent+slow)
	t.Logf("p99 of an honest peer: %v, beside them %v; each holds %d bytes", quiet, beside, perPeer)
	require.Less(t, perPeer, int64(64<<10))
}

// memoryInUse returns the number of bytes in heap and stacks.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
