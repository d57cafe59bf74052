module github.com/asterisque-go/asterisque/cluster

go 1.25.0

require (
	github.com/asterisque-go/asterisque v0.0.0
	github.com/asterisque-go/asterisque/tunnel v0.0.0
	github.com/asterisque-go/asterisque/wire/natswire v0.0.0
	github.com/nats-io/nats.go v1.53.1
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/fxamacker/cbor/v2 v2.10.0 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace (
	github.com/asterisque-go/asterisque => ..
	github.com/asterisque-go/asterisque/tunnel => ../tunnel
	github.com/asterisque-go/asterisque/wire/natswire => ../wire/natswire
)
