package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/schema"
)

// Order is the parameter of the example's function.
type Order struct {
	Item   string `cbor:"1,keyasint" doc:"what is ordered"`
	Pieces uint8  `cbor:"2,keyasint,omitempty" doc:"how many; 0 is 1"`
}

// Receipt is the result of the example's function.
type Receipt struct {
	ID    []byte `cbor:"id" doc:"names the order"`
	Price int64  `cbor:"price,omitempty"`
}

var order = asterisque.Func[Order, Receipt](10, "order")

// indented formats a schema.
func indented(s asterisque.Schema) string {
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(s), "", " "); err != nil {
		return err.Error()
	}
	return text.String()
}

func Example() {
	svc := asterisque.NewService()
	order.Handle(svc, func(context.Context, Order) (Receipt, error) { return Receipt{ID: []byte{1}}, nil })
	svc.Describe(asterisque.WithSchemas(schema.New()))

	// A peer gets the same list by asterisque.Describe.
	f := svc.Functions()[0]
	fmt.Println(f.Signature)
	fmt.Println(indented(f.Params))
	fmt.Println(indented(f.Result))
	// Output:
	// func(schema_test.Order) schema_test.Receipt
	// {
	//  "$schema": "https://json-schema.org/draft/2020-12/schema",
	//  "properties": {
	//   "1": {
	//    "description": "what is ordered",
	//    "type": [
	//     "string",
	//     "null"
	//    ],
	//    "x-cbor-key": "integer"
	//   },
	//   "2": {
	//    "maximum": 255,
	//    "minimum": 0,
	//    "description": "how many; 0 is 1",
	//    "type": [
	//     "integer",
	//     "null"
	//    ],
	//    "x-cbor-key": "integer"
	//   }
	//  },
	//  "type": [
	//   "object",
	//   "null"
	//  ]
	// }
	// {
	//  "$schema": "https://json-schema.org/draft/2020-12/schema",
	//  "properties": {
	//   "id": {
	//    "contentEncoding": "base64",
	//    "description": "names the order",
	//    "type": [
	//     "string",
	//     "null"
	//    ]
	//   },
	//   "price": {
	//    "type": "integer",
	//    "maximum": 9223372036854775807,
	//    "minimum": -9223372036854775808
	//   }
	//  },
	//  "type": "object",
	//  "required": [
	//   "id"
	//  ]
	// }
}

// An address encodes itself, as a byte string. Only its schema describes the valid ones.
func ExampleAs() {
	svc := asterisque.NewService()
	lookup := asterisque.Func[netip.Addr, string](11, "lookup")
	lookup.Handle(svc, func(context.Context, netip.Addr) (string, error) { return "", nil })

	address := schema.As[netip.Addr](`{"type": "string", "contentEncoding": "base64", "description": "4 or 16 bytes"}`)
	svc.Describe(asterisque.WithSchemas(schema.New(address)))
	fmt.Println(indented(svc.Functions()[0].Params))
	// Output:
	// {
	//  "$schema": "https://json-schema.org/draft/2020-12/schema",
	//  "contentEncoding": "base64",
	//  "description": "4 or 16 bytes",
	//  "type": "string"
	// }
}
