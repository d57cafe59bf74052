module github.com/asterisque-go/asterisque

go 1.25.0

require (
	github.com/fxamacker/cbor/v2 v2.10.0
	github.com/stretchr/testify v1.12.1
	github.com/xtaci/smux v1.5.57
	golang.org/x/sync v0.22.0
)

require (
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
