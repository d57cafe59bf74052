package classic_test

import (
	"strings"
	"testing"

	"github.com/asterisque-go/asterisque/codec/classic"
)

var codecs = []classic.Codec{classic.MessagePack, classic.Simple}

// eachCodec runs a test with each codec.
func eachCodec(t *testing.T, test func(t *testing.T, form classic.Codec)) {
	for _, c := range codecs {
		t.Run(c.Name(), func(t *testing.T) { test(t, c) })
	}
}

// recoded re-encodes a value of Simple in the codec form.
func recoded[B string | []byte](form classic.Codec, value B) []byte {
	if form == classic.Simple {
		return []byte(value)
	}
	var p any
	b, err := []byte(nil), classic.Simple.Decode([]byte(value), &p)
	if err == nil {
		b, err = form.Append(nil, p)
	}
	if err != nil {
		panic(err)
	}
	return b
}

// Tags of the format.
const list, mapping, params = "\x20", "\x21", "("

// counted returns an encoding of a tag and n items of the same form.
func counted(form classic.Codec, tag string, n int, item string) string {
	head := form.JoinParams(nil, &classic.Open{Count: uint16(n)}) // its tag before a count
	return tag + string(head[1:]) + strings.Repeat(item, n)
}

// sized returns an encoding of a tag, and content behind its length.
func sized(form classic.Codec, tag, content string) string {
	control, err := (&classic.Control{Data: []byte(content)}).AppendTo(nil, form)
	if err != nil {
		panic(err)
	}
	return tag + string(control[2:]) // behind its tag and its code
}
