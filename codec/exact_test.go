package codec_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/valuetest"
)

// A value arrives unchanged, or its sender refuses it.
func TestValues_ExactOrRefused(t *testing.T) {
	for c, depth := range map[codec.Values]int{codec.CBOR: 32, codec.JSON: 10_000} {
		t.Run(c.Name(), func(t *testing.T) { valuetest.Check(t, c, depth) })
	}
}

func TestRaw_ExactOrRefusedBySender(t *testing.T) { valuetest.CheckFew(t, codec.Raw, 32) }
