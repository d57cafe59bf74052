package piping_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestPause_NoDebt(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		s.there.StopReading()
		r := s.there.recv()
		b := s.here.send(large)
		s.run()
		require.False(t, b.isDone())
		require.Zero(t, s.load().Large)
		s.there.StartReading()
		s.run()
		require.True(t, b.isDone())
		require.True(t, r.isDone())
		s.finish()
	})
}

func TestPause_KeepsDebt(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		r := s.there.recv()
		synctest.Wait()
		s.there.StopReading()
		s.run()
		require.True(t, b.isDone())
		require.False(t, r.isDone())
		require.Positive(t, s.load().Large)
		s.there.StartReading()
		s.run()
		require.True(t, r.isDone())
		require.Zero(t, s.load().Large)
		s.finish()
	})
}

func TestPause_InLine(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b, free := s.claim()
		s.there.StopReading()
		free()
		s.run()
		require.Equal(t, load{Windows: early}, s.load(), "it has passed its turn on")
		s.there.StartReading()
		s.run()
		require.True(t, b.isDone())
		s.finish()
	})
}

func TestPause_EndsWithCall(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		require.NoError(t, s.there.Send(background, []byte("last")))
		s.here.StopReading()
		r := s.here.recv()
		s.run()
		require.False(t, r.isDone())
		s.there.end().Close(nil)
		s.run()
		require.NoError(t, r.err, "Blocks before the end are not lost")
		require.Equal(t, "last", string(r.block.Payload))
		s.finish()
	})
}
