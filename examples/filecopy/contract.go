package main

import (
	"crypto/sha256"

	"github.com/asterisque-go/asterisque"
)

// put copies one file. The messages of a call, in their order:
//
//	sender → receiver   parameters   Offer: the file's name and size
//	sender ← receiver   Block        Have: the part of it from an earlier attempt
//	sender → receiver   Block        From: the position at which the sender continues
//	sender → receiver   Blocks       the bytes from there to the end, and then the SHA-256 of the whole file
//	sender ← receiver   result       the file is there, under its name
var put = asterisque.Stream[Offer, From, Have, struct{}](10, "put")

// Offer announces a file.
type Offer struct {
	Name string `cbor:"1,keyasint"` // with slashes, below the folder of the receiver
	Size int64  `cbor:"2,keyasint"` // in bytes
}

// Have is how much of a file the receiver has, and the SHA-256 of that part, by which the sender
// checks that it is the beginning of the same file.
type Have struct {
	Size int64             `cbor:"1,keyasint"` // in bytes
	Sum  [sha256.Size]byte `cbor:"2,keyasint"`
}

// From is the number of bytes that the sender skips: all that the receiver has, or none.
type From struct {
	Offset int64 `cbor:"1,keyasint"`
}

// The receiver's own errors, beside those of the library. Codes from 1000 on are the application's.
var (
	errRefused = &asterisque.Abort{Code: 1000, Message: "the receiver does not want that"}
	errDamaged = &asterisque.Abort{Code: 1001, Message: "the checksum does not match"}
)
