package classicwire_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/pipe"
)

// signalled returns untilOver with a signal when the handler starts.
func signalled(running chan<- struct{}) func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
	return func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		running <- struct{}{}
		return untilOver(ctx, p, params)
	}
}

// untilOver is a handler that returns when its call ends.
func untilOver(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Shutdown completes running calls, and refuses new ones.
func TestShutdown_RunningAndNew(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		running, gate := make(chan struct{}), make(chan struct{})
		svc.Handle(70, "wait", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
			close(running)
			<-gate
			return nil, nil
		})
		dialled, accepted := connect(t, form, svc, offer())
		p, err := dialled.Open(background, 70, nil)
		require.NoError(t, err)
		<-running
		done := make(chan error, 1)
		go func() { done <- accepted.Shutdown(background) }()
		for err == nil { // until the Shutdown has begun
			_, err = echo.Call(background, dialled, "x")
		}
		require.ErrorContains(t, err, "the session is being shut down")
		close(gate)
		_, err = p.Result(background)
		require.NoError(t, err)
		require.NoError(t, <-done)
		<-dialled.Done()
		require.ErrorContains(t, dialled.Err(), "the peer closed the session")
	})
}

// Closing a session ends the calls of both sides.
func TestClose_CallsOfBothSides(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := offer()
		running := make(chan struct{}, 2)
		svc.Handle(70, "wait", signalled(running))
		dialled, accepted := connect(t, form, svc, svc)
		p, err := dialled.Open(background, 70, nil)
		require.NoError(t, err)
		q, err := accepted.Open(background, 70, nil)
		require.NoError(t, err)
		<-running
		<-running
		require.NoError(t, accepted.Close())
		_, err = p.Result(background)
		require.ErrorIs(t, err, asterisque.ErrSessionClosed)
		_, err = q.Result(background)
		require.ErrorIs(t, err, asterisque.ErrSessionClosed)
		<-dialled.Done()
	})
}
