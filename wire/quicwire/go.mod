module github.com/asterisque-go/asterisque/wire/quicwire

go 1.25.0

require (
	github.com/asterisque-go/asterisque v0.0.0
	github.com/quic-go/quic-go v0.61.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/fxamacker/cbor/v2 v2.10.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/asterisque-go/asterisque => ../..
