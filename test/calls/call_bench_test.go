package calls

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/callbench"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/priority"
)

// BenchmarkCall is a 64-byte echo through the typed API, both ends in this process.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			sess, _ := testkit.Connect(b, testkit.EchoService())
			text := strings.Repeat("*", 64)
			callbench.InParallel(b, callers, func() error {
				_, err := testkit.Echo.Call(context.Background(), sess, text)
				return err
			})
		})
	}
}

// BenchmarkInlineCall is BenchmarkCall with a function that runs inline, and without a value codec.
func BenchmarkInlineCall(b *testing.B) {
	bytes := asterisque.Func[[]byte, []byte](11, "bytes")
	svc := asterisque.NewService()
	bytes.Handle(svc, func(_ context.Context, p []byte) ([]byte, error) { return p, nil }, asterisque.WithInline())
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			sess, _ := testkit.Connect(b, svc, asterisque.WithCodecs(codec.Raw))
			params := make([]byte, 64)
			callbench.InParallel(b, callers, func() error {
				_, err := bytes.Call(context.Background(), sess, params)
				return err
			})
		})
	}
}

// BenchmarkCallWithPriorities is BenchmarkCall with callers of eight priorities.
func BenchmarkCallWithPriorities(b *testing.B) {
	sess, _ := testkit.Connect(b, testkit.EchoService())
	text := strings.Repeat("*", 64)
	var next atomic.Int64
	callbench.InParallel(b, 64, func() error {
		p := asterisque.WithPriority(priority.Priority(next.Add(1) % 8))
		_, err := testkit.Echo.Call(context.Background(), sess, text, p)
		return err
	})
}

// BenchmarkPingPong is the floor: a bare TCP connection on which one goroutine writes 64 bytes and
// waits for them to come back.
func BenchmarkPingPong(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 64)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			c.Write(buf)
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(b, err)
	defer c.Close()
	callbench.InParallel(b, 1, func() error {
		buf := make([]byte, 64)
		if _, err := c.Write(buf); err != nil {
			return err
		}
		_, err := io.ReadFull(c, buf)
		return err
	})
}
