package codec

import (
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// cborPlans has the plans of Go types as the library behind CBOR reads them.
var cborPlans = &sizing.Plans{Rules: sizing.Rules{Kind: cborKind, Field: cborField}}

func cborKind(t reflect.Type) (k sizing.Kind, ok bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return sizing.Time, true
	case t == reflect.TypeFor[big.Int]():
		return sizing.Number, true
	case t == reflect.TypeFor[cbor.Tag]():
		return sizing.Any, true
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(reflect.TypeFor[cbor.Unmarshaler]()):
		return sizing.Own, true
	}
	return 0, false
}

// cborField reads the tags of a field as the library does.
func cborField(f reflect.StructField) (n sizing.Name, ok bool) {
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	tag := f.Tag.Get("cbor")
	if tag == "" {
		tag = f.Tag.Get("json")
	}
	structure := f.Anonymous && t.Kind() == reflect.Struct
	if tag == "-" || !f.IsExported() && !structure {
		return n, false
	}
	name, options, _ := strings.Cut(tag, ",")
	n = sizing.Name{Name: name, Tagged: tag != "", Embedded: structure && name == ""}
	if name == "" {
		n.Name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		n.IsNumber = n.IsNumber || option == "keyasint"
	}
	if n.IsNumber {
		number, err := strconv.Atoi(n.Name)
		n.Number, n.Name = int64(number), strconv.Itoa(number)
		ok = err == nil
		return n, ok
	}
	return n, true
}
