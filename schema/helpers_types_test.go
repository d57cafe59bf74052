package schema

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// Types of the values in the tests, each with a special property.

type (
	myInt    int16
	myString string
	myByte   uint8
	myBytes  []byte
	hash     [32]byte
	names    []string
	tree     struct {
		Name     string           `json:"name"`
		Children []tree           `json:"children,omitempty"`
		Named    map[string]*tree `json:"named"`
	}
	ping        struct{ Pong *pong }
	pong        struct{ Ping *ping }
	nest        []nest
	maze        map[string]maze
	page[T any] struct {
		Items []T `cbor:"items" doc:"what is on the page"`
		Next  *T  `cbor:"next,omitempty"`
	}
	größe struct{ Länge int }
)

// plain has fields without tags.
type plain struct {
	Name   string
	Count  int
	hidden int
	Left   chan int `cbor:"-"`
}

// tagged has tags of all kinds.
type tagged struct {
	Name  string  `cbor:"name,omitempty" json:"other" doc:"who it is"`
	Value float32 `json:"value,omitzero"`
	Both  uint8   `cbor:",omitempty" json:"both"`
	Odd   int     `cbor:"-,"`
	Func  func()  `json:"-"`
	Key   string  `cbor:"7"`
}

// numbered has integers as keys.
type numbered struct {
	First    string           `cbor:"1,keyasint"`
	Second   uint8            `cbor:"2,keyasint,omitempty"`
	Negative int64            `cbor:"-3,keyasint"`
	Padded   bool             `cbor:"+04,keyasint"`
	Text     string           `cbor:"text"`
	Table    map[int8]float32 `cbor:"300,keyasint"`
	Inner    *numbered        `cbor:"0,keyasint"`
}

// listed is an array in CBOR.
type listed struct {
	_ struct{} `cbor:",toarray" doc:"a point with a name"`
	X int8     `doc:"to the right"`
	Y *int8
	N string `cbor:"n,omitempty"`
	H []byte
}

type base struct {
	ID   uint16
	Name string
	Same int
}

// Base2 is exported, so that a pointer to it can be set.
type Base2 struct {
	Extra bool
	Name  int8
	Same  string
}

// embeds has the fields of embedded structs.
type embeds struct {
	base
	*Base2
	Name tagged
	deep `cbor:"deep"`
}

type deep struct{ Down int }

// shadow has fields that hide each other.
type shadow struct {
	A struct{ N string } `cbor:"n"`
	N int                `cbor:"m"`
	levelOne
}

type levelOne struct {
	N int8 // not hidden, since the other field is named m
	levelTwo
}

type levelTwo struct {
	N string // hidden
	M string `cbor:"deepest"`
}

// twice contains one struct on two paths, which hides its fields.
type twice struct {
	one
	two
	Z bool
}

type (
	one  struct{ both }
	two  struct{ both }
	both struct{ N int }
)

// listing is an array in CBOR, which begins with the fields of another struct.
type listing struct {
	_ struct{} `cbor:",toarray"`
	base
	Z bool
}

// special has types without a counterpart in JSON.
type special struct {
	Bytes   []byte
	Hash    *[4]byte
	At      time.Time  `cbor:"at,omitempty"`
	Until   *time.Time `cbor:"until"`
	For     time.Duration
	Big     *big.Int
	Large   big.Int
	Any     any
	Raw     cbor.RawMessage
	Str     cbor.ByteString
	Number  json.Number
	JSON    json.RawMessage
	Nothing struct{}
}

// celsius has its own encoding: a text such as "21C".
type celsius int

// celsiusSchema is the schema of celsius.
const celsiusSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string","pattern":"^-?[0-9]{1,3}C$","description":"degrees"}`

func (c celsius) MarshalCBOR() ([]byte, error) { return cbor.Marshal(strconv.Itoa(int(c)) + "C") }

func (c *celsius) UnmarshalCBOR(data []byte) error {
	var s string
	if data[0] == 0xf6 {
		return errors.New("nothing is no temperature")
	}
	if err := cbor.Unmarshal(data, &s); err != nil {
		return err
	}
	digits, ok := strings.CutSuffix(s, "C")
	if rest := strings.TrimPrefix(digits, "-"); !ok || rest == "" || len(rest) > 3 || strings.Trim(rest, "0123456789") != "" {
		return errors.New("no temperature")
	}
	n, err := strconv.Atoi(digits)
	*c = celsius(n)
	return err
}
