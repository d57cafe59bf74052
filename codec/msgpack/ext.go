package msgpack

import (
	"time"

	"github.com/tinylib/msgp/msgp"
)

// Ext is a value of an extension type with a meaning only for the application. A declared Ext
// accepts every extension type, even the timestamp; without a declared type all but the timestamp
// become an Ext.
type Ext struct {
	Type int8   // of 0 to 127; the format reserves those below 0
	Data []byte // unchanged
}

// extension makes the library write an Ext.
type extension struct{ *Ext }

func (e extension) ExtensionType() int8            { return e.Type }
func (e extension) Len() int                       { return len(e.Data) }
func (e extension) MarshalBinaryTo(b []byte) error { copy(b, e.Data); return nil }
func (e extension) UnmarshalBinary(b []byte) error { e.Data = append([]byte{}, b...); return nil }

func appendExt(dst []byte, e *Ext) ([]byte, error) {
	if err := fits(len(e.Data)); err != nil {
		return dst, err
	}
	return msgp.AppendExtension(dst, extension{e})
}

// extOf returns an item with the head h as an Ext.
func extOf(h itemHead, content []byte) Ext {
	return Ext{Type: h.ext, Data: append([]byte{}, content...)}
}

// timeOf returns an item of the extension type of times.
func timeOf(whole []byte) (time.Time, error) {
	t, _, err := msgp.ReadTimeUTCBytes(whole)
	if err != nil {
		return t, errTime
	}
	return t, nil
}
