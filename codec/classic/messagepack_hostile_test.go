package classic_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// inOpen is the head of an Open with one parameter.
const inOpen = "\x28\x01\x00\x0a\x01"

// hostile are messages of a malicious peer, and the errors for them.
var hostile = []struct {
	name, bytes string
	err         error
	text        string
}{
	{"a map32 of 2^32-1 as a message", "\xdf\xff\xff\xff\xff", codec.ErrProtocol, "unexpected message tag df"},
	{"a map32 of 2^32-1 as a value", inOpen + "\xdf\xff\xff\xff\xff", codec.ErrProtocol, "unexpected value tag df"},
	{"a map32 of 2^32-1 as a count", inOpen + "\x21\xdf\xff\xff\xff\xff", codec.ErrProtocol, "an integer was expected, and df came"},
	{"an array32 of 2^32-1 as a count", inOpen + "\x20\xdd\xff\xff\xff\xff", codec.ErrProtocol, "an integer was expected, and dd came"},
	{"a list of 2^32-1", inOpen + "\x20\xce\xff\xff\xff\xff", codec.ErrProtocol, "does not fit 2 bytes, signed"},
	{"a list of 2^64-1", inOpen + "\x20\xcf\xff\xff\xff\xff\xff\xff\xff\xff", codec.ErrProtocol, "does not fit 8 bytes"},
	{"a list of -2^63", inOpen + "\x20\xd3\x80\x00\x00\x00\x00\x00\x00\x00", codec.ErrProtocol, "does not fit 2 bytes, signed"},
	{"a list of -1, which is 65,535", inOpen + "\x20\xff", codec.ErrTooLarge, "65542 bytes or more"},
	{"a map of -1, twice as many", inOpen + "\x21\xff", codec.ErrTooLarge, "131077 bytes or more"},
	{"lists of -1 in each other", inOpen + strings.Repeat("\x20\xff", 1000), codec.ErrTooLarge, "bytes or more"},
	{"-1 parameters", "\x28\x01\x00\x0a\xff", codec.ErrTooLarge, "65540 bytes or more"},
	{"a text of 2^32-1", inOpen + "\x0b\xdb\xff\xff\xff\xff", codec.ErrTooLarge, "2147483647 bytes or more"},
	{"a bin of 2^32-1", inOpen + "\x0a\xc6\xff\xff\xff\xff", codec.ErrTooLarge, "2147483647 bytes or more"},
	{"a schema of 2^32-1", inOpen + "\x22\xdb\xff\xff\xff\xff", codec.ErrTooLarge, "2147483647 bytes or more"},
	{"a Block of 2^31", "\x23\x01\x00\xdb\x80\x00\x00\x00", codec.ErrTooLarge, "bytes or more"},
	{"a Control of 2^32-1", "\x2a\x51\xdb\xff\xff\xff\xff", codec.ErrTooLarge, "bytes or more"},
	{"an Abort of 2^32-1", "\x29\x01\x02\x00\xdb\xff\xff\xff\xff", codec.ErrTooLarge, "bytes or more"},
	{"a Block beyond its payload", "\x23\x01\x00\xda\xf0\x00" + strings.Repeat("x", 0xf000), codec.ErrProtocol, "payload of 61440 bytes"},
	{"a fixext as a number", inOpen + "\x03\xd4\x00\x00", codec.ErrProtocol, "an integer was expected, and d4 came"},
	{"an ext as a number", inOpen + "\x06\xc9\xff\xff\xff\xff\x00", codec.ErrProtocol, "an integer was expected, and c9 came"},
	{"an ext as a text", inOpen + "\x0b\xc7\x01\x00x", codec.ErrProtocol, "a text or a binary was expected, and c7 came"},
	{"a fixext as a text", inOpen + "\x0b\xd8" + strings.Repeat("x", 17), codec.ErrProtocol, "a text or a binary was expected, and d8 came"},
	{"the byte that is nothing", inOpen + "\x06\xc1", codec.ErrProtocol, "an integer was expected, and c1 came"},
	{"nil as a number", inOpen + "\x06\xc0", codec.ErrProtocol, "an integer was expected, and c0 came"},
	{"a number as a text", inOpen + "\x0b\x05", codec.ErrProtocol, "a text or a binary was expected, and 05 came"},
	{"half a uuid of another type", inOpen + "\x0c\x00\xa0", codec.ErrProtocol, "an integer was expected, and a0 came"},
	{"pipe 0", "\x23\x00\x00\xa0", codec.ErrProtocol, "pipe id 0"},
	{"pipe 0 in nine bytes", "\x23\xd3\x00\x00\x00\x00\x00\x00\x00\x00\x00\xa0", codec.ErrProtocol, "pipe id 0"},
	{"pipe 2^16", "\x23\xce\x00\x01\x00\x00\x00\xa0", codec.ErrProtocol, "does not fit 2 bytes, signed"},
}

// Hostile MessagePack is refused by its first bytes.
func TestAttack_FirstBytes(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			var err error
			grown := weightest.AllocatedAtMost(100<<10, func() { _, _, err = classic.MessagePack.Parse([]byte(h.bytes), classic.MaxMessage) })
			require.ErrorIs(t, err, h.err)
			require.ErrorContains(t, err, h.text)
			require.Less(t, grown, 100<<10)

			d := classic.Decoder{Codec: classic.MessagePack}
			for n := range len(h.bytes) {
				_, _, again := d.Next([]byte(h.bytes[:n]), classic.MaxMessage)
				if again != classic.ErrIncomplete {
					require.ErrorIs(t, again, h.err, "as soon as that is clear")
					return
				}
			}
		})
	}
}

// A million nested lists are refused.
func TestAttack_NestedLists(t *testing.T) {
	const levels = 1_000_000
	for name, level := range map[string]string{"lists": "\x20\x01", "maps": "\x21\x01\x00", "structs": "\x22\xa0\x01"} {
		t.Run(name, func(t *testing.T) {
			value := []byte(strings.Repeat(level, levels) + "\x00")
			message := append([]byte(inOpen), value...)
			_, _, err := classic.MessagePack.Parse(message, classic.MaxMessage)
			require.ErrorIs(t, err, codec.ErrTooLarge)
			grown := weightest.AllocatedAtMost(1<<20, func() {
				// Parse accepts the message: only the decoding of values has a limit of depth.
				_, _, err = classic.MessagePack.Parse(message, len(message))
				require.NoError(t, err)
				require.NoError(t, classic.MessagePack.CheckValue(value))
				var v any
				require.ErrorIs(t, classic.MessagePack.Decode(value, &v), codec.ErrTooLarge)
				require.Positive(t, classic.MessagePack.Weigh(value, reflect.TypeFor[any](), 1<<20))
			})
			require.Less(t, grown, 1<<20)
		})
	}
	_, _, err := classic.MessagePack.Parse([]byte(inOpen+strings.Repeat("\x91", levels)), classic.MaxMessage)
	require.ErrorContains(t, err, "unexpected value tag 91", "those of MessagePack are none")
}

// Trailing bytes are refused.
func TestAttack_TrailingBytes(t *testing.T) {
	for name, b := range map[string]string{"a null": "\x00\x00", "a text": "\x0b\xa1x\x00", "parameters": "\x28\x01\x00\xa0", "half an integer": "\x00\xcd"} {
		var v any
		require.ErrorIs(t, classic.MessagePack.Decode([]byte(b), &v), codec.ErrProtocol, name)
		_, _, err := classic.MessagePack.SplitParams([]byte(b))
		require.ErrorIs(t, err, codec.ErrProtocol, name)
	}
	m, n, err := classic.MessagePack.Parse([]byte("\x2a\x43\xa0\xc1\xc1"), classic.MaxMessage)
	require.NoError(t, err, "what follows a message is the next")
	require.Equal(t, 3, n)
	_, _, err = classic.MessagePack.Parse([]byte("\xc1\xc1"), classic.MaxMessage)
	require.ErrorContains(t, err, "unexpected message tag c1")
	require.Equal(t, &classic.Control{Code: classic.CloseCode, Data: []byte{}}, m)
}

// Invalid UTF-8 is replaced: memory and estimate include the longer text.
func TestAttack_InvalidUTF8(t *testing.T) {
	bad := strings.Repeat("\xff", 60_000)
	data := []byte(sized(classic.MessagePack, "\x0b", bad))
	var s string
	grown := weightest.AllocatedAtMost(20*len(data), func() { require.NoError(t, classic.MessagePack.Decode(data, &s)) })
	require.Equal(t, strings.Repeat("\uFFFD", len(bad)), s)
	require.Less(t, grown, 20*len(data))
	require.GreaterOrEqual(t, classic.MessagePack.Weigh(data, reflect.TypeFor[string](), 1<<30), len(s))
}
