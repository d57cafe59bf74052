package msgpack_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/codec/msgpack"
	"github.com/asterisque-go/asterisque/internal/test/valuetest"
)

// A value arrives unchanged, or its sender refuses it.
func TestValues_ExactOrRefused(t *testing.T) { valuetest.Check(t, msgpack.Values, 32) }
