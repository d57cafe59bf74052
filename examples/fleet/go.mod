module github.com/asterisque-go/asterisque/examples/fleet

go 1.25.0

require (
	github.com/asterisque-go/asterisque v0.0.0
	github.com/asterisque-go/asterisque/cluster v0.0.0
	github.com/asterisque-go/asterisque/cluster/broker v0.0.0
	github.com/asterisque-go/asterisque/wire/natswire v0.0.0
	github.com/nats-io/nats.go v1.53.1
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.22.0
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.7.2-default-no-op // indirect
	github.com/asterisque-go/asterisque/tunnel v0.0.0 // indirect
	github.com/fxamacker/cbor/v2 v2.10.0 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nats-server/v2 v2.14.5 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/asterisque-go/asterisque => ../..

replace github.com/asterisque-go/asterisque/cluster => ../../cluster

replace github.com/asterisque-go/asterisque/tunnel => ../../tunnel

replace github.com/asterisque-go/asterisque/wire/natswire => ../../wire/natswire

replace github.com/asterisque-go/asterisque/cluster/broker => ../../cluster/broker
