module github.com/asterisque-go/asterisque/conformance

go 1.25.0

require (
	github.com/asterisque-go/asterisque v0.0.0
	github.com/asterisque-go/asterisque/wire/wswire v0.0.0
	github.com/fxamacker/cbor/v2 v2.10.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/asterisque-go/asterisque => ..

replace github.com/asterisque-go/asterisque/wire/wswire => ../wire/wswire
