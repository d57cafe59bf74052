package main

import (
	"fmt"

	"google.golang.org/protobuf/types/known/typepb"
)

// Field is the value of typed calls without protobuf. It has the fields of google.protobuf.Field,
// which is the value with protobuf; like that, CBOR has numbers for the fields' names, and
// MessagePack and JSON their digits. It is exported because net/rpc requires that.
type Field struct {
	Kind         int32  `cbor:"1,keyasint" json:"1"`
	Cardinality  int32  `cbor:"2,keyasint" json:"2"`
	Number       int32  `cbor:"3,keyasint" json:"3"`
	Name         string `cbor:"4,keyasint" json:"4"`
	TypeURL      string `cbor:"6,keyasint" json:"6"`
	OneofIndex   int32  `cbor:"7,keyasint" json:"7"`
	Packed       bool   `cbor:"8,keyasint" json:"8"`
	JSONName     string `cbor:"10,keyasint" json:"10"`
	DefaultValue string `cbor:"11,keyasint" json:"11"`
}

var sampleField = Field{
	Kind: 9, Cardinality: 3, Number: 17, Name: "shipping_address", TypeURL: "type.example.com/shop.Address", OneofIndex: 2, Packed: true,
	JSONName: "shippingAddress", DefaultValue: "none",
}

// sampleProto returns the same as a message of protobuf.
func sampleProto() *typepb.Field {
	f := &sampleField
	return &typepb.Field{
		Kind: typepb.Field_Kind(f.Kind), Cardinality: typepb.Field_Cardinality(f.Cardinality), Number: f.Number, Name: f.Name, TypeUrl: f.TypeURL,
		OneofIndex: f.OneofIndex, Packed: f.Packed, JsonName: f.JSONName, DefaultValue: f.DefaultValue,
	}
}

// checkField returns an error unless the sample was returned.
func checkField(number int32, name string) error {
	if number == sampleField.Number && name == sampleField.Name {
		return nil
	}
	return fmt.Errorf("the reply %d %q is not the request", number, name)
}
