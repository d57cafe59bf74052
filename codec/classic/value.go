package classic

import (
	"encoding/binary"
	"errors"
	"math"
)

// Tags of values: the first byte of each.
const (
	nullTag    = 0x00
	trueTag    = 0x01
	falseTag   = 0x02
	int8Tag    = 0x03
	int16Tag   = 0x04
	int32Tag   = 0x05
	int64Tag   = 0x06
	float32Tag = 0x07
	float64Tag = 0x08
	binaryTag  = 0x0a
	stringTag  = 0x0b
	uuidTag    = 0x0c
	listTag    = 0x20
	mapTag     = 0x21
	structTag  = 0x22

	// paramsTag stands before the count and the values of an Open's parameters where they have to
	// be one value, which is between a session and its wire. It never leaves the program.
	paramsTag = openTag
)

// kinds names the types of values, for errors.
var kinds = map[byte]string{
	nullTag: "null", trueTag: "a boolean", falseTag: "a boolean", int8Tag: "an integer", int16Tag: "an integer", int32Tag: "an integer", int64Tag: "an integer",
	float32Tag: "a float", float64Tag: "a float", binaryTag: "a binary", stringTag: "a string", uuidTag: "a uuid", listTag: "a list", mapTag: "a map", structTag: "a struct",
}

// fixed returns how many bytes a value has that has no length of its own, or 0.
func fixed(tag byte) int {
	switch tag {
	case nullTag, trueTag, falseTag:
		return 1
	case int8Tag:
		return 2
	case int16Tag:
		return 3
	case int32Tag, float32Tag:
		return 5
	case int64Tag, float64Tag:
		return 9
	case uuidTag:
		return 17
	}
	return 0
}

// head returns the size of the value at the beginning of data, without the values inside it, and
// how many of those follow. at is where data is, for errors.
func head(data []byte, at int) (size, inside int, err error) {
	if size = fixed(data[0]); size == 0 {
		switch data[0] {
		case binaryTag, stringTag, structTag, listTag, mapTag:
			size = 3
		default:
			return 0, 0, malformed(at, "unexpected value tag %02x", data[0])
		}
	}
	if len(data) < size {
		return 0, 0, ErrIncomplete
	}
	switch data[0] {
	case listTag:
		return size, int(binary.BigEndian.Uint16(data[1:])), nil
	case mapTag:
		return size, 2 * int(binary.BigEndian.Uint16(data[1:])), nil
	case binaryTag, stringTag:
		size += int(binary.BigEndian.Uint16(data[1:]))
	case structTag:
		n := 3 + int(binary.BigEndian.Uint16(data[1:]))
		if len(data) <= n {
			return 0, 0, ErrIncomplete
		}
		return n + 1, int(data[n]), nil
	}
	if len(data) < size {
		return 0, 0, ErrIncomplete
	}
	return size, 0, nil
}

// walk steps over the pending values that begin at data[at]. It returns where it stands, and how
// many begin there, also with an error.
func walk(data []byte, at int, pending int64, limit int) (int, int64, error) {
	for pending > 0 {
		if least := int64(at) + pending; least > int64(limit) { // a value has at least one byte
			return at, pending, &SizeError{Size: int(min(least, math.MaxInt32)), Limit: limit}
		}
		if at >= len(data) {
			return at, pending, ErrIncomplete
		}
		size, inside, err := head(data[at:], at)
		if err != nil {
			return at, pending, err
		}
		at += size
		pending += int64(inside) - 1
	}
	return at, 0, nil
}

// CheckValue returns an error, a *FormatError, unless data is exactly one encoded value.
func CheckValue(data []byte) error { return checkValues(data, 0, 1) }

// checkValues returns an error unless data[at:] is exactly count encoded values.
func checkValues(data []byte, at, count int) error {
	end, _, err := walk(data, at, int64(count), len(data))
	var long *SizeError
	switch {
	case err == ErrIncomplete, errors.As(err, &long):
		return malformed(len(data), "ends in the middle of a value")
	case err != nil:
		return err
	case end != len(data):
		return malformed(end, "%d bytes after the value", len(data)-end)
	}
	return nil
}
