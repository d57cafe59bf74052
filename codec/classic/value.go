package classic

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

	// paramsTag precedes the count and the values of an Open's parameters if they have to be a
	// single value, between a session and its wire. It never leaves the program.
	paramsTag = openTag
)

// kinds names the types of values, for errors.
var kinds = map[byte]string{
	nullTag: "null", trueTag: "a boolean", falseTag: "a boolean", int8Tag: "an integer", int16Tag: "an integer", int32Tag: "an integer", int64Tag: "an integer",
	float32Tag: "a float", float64Tag: "a float", binaryTag: "a binary", stringTag: "a string", uuidTag: "a uuid", listTag: "a list", mapTag: "a map", structTag: "a struct",
}

// widths are the bytes of numbers, by their tags.
var widths = [...]int{int8Tag: 1, int16Tag: 2, int32Tag: 4, int64Tag: 8, float32Tag: 4, float64Tag: 8}
