package vectors

// handshake breaks the rules for the fields of a Sync.
func handshake() []mutant {
	list := []mutant{
		{"7-handshake: a Sync has any number of entries", syncFile, `r.Map("Sync", maxSyncEntries)`, `r.Map("Sync", 1000)`},
		{"7-handshake: keys of a Sync may descend", syncFile, `key = r.Key(i, key)`, `key = r.Key(0*i, key)`},
		{"7-handshake: unknown keys of a Sync are refused", syncFile, "default:\n\t\tr.Skip()", "default:\n\t\tr.Fail(r.At, \"unknown\")"},
		{"7-handshake: an empty session id is refused", syncFile, `if len(b) != 0 && len(b) != size {`, `if len(b) != size {`},
		{"7-handshake: a session id may be longer", syncFile, `if len(b) != 0 && len(b) != size {`, `if len(b) != 0 && len(b) < size {`},
		{"7-handshake: a session id may be shorter", syncFile, `if len(b) != 0 && len(b) != size {`, `if len(b) > size {`},
		{"7-handshake: a session id has any length", syncFile, `readFixed(r, "session id", SessionSize)`, `r.Bytes("session id")`},
		{"7-handshake: a secret has any length", syncFile, `readFixed(r, "secret", SecretSize)`, `r.Bytes("secret")`},
		{"7-handshake: a secret has to be there", syncFile, `readFixed(r, "secret", SecretSize)`, `r.BytesOf("secret", SecretSize, SecretSize)`},
		{"7-handshake: a session id has to be there", syncFile, `readFixed(r, "session id", SessionSize)`, `r.BytesOf("session id", SessionSize, SessionSize)`},
		{"7-handshake: a node id has any length", syncFile, `r.BytesOf("node id", 0, MaxNode)`, `r.Bytes("node id")`},
		{"7-handshake: a credential has any length", syncFile, `r.BytesOf("credential", 0, MaxCredential)`, `r.Bytes("credential")`},
		{"7-handshake: there may be no codecs", syncFile, `if n < 1 || n > MaxCodecs {`, `if n > MaxCodecs {`},
		{"7-handshake: there may be any number of codecs", syncFile, `if n < 1 || n > MaxCodecs {`, `if n < 1 {`},
		{"7-handshake: there may be 17 codecs", syncFile, `if n < 1 || n > MaxCodecs {`, `if n < 1 || n > MaxCodecs+1 {`},
		{"7-handshake: 16 codecs are refused", syncFile, `if n < 1 || n > MaxCodecs {`, `if n < 1 || n >= MaxCodecs {`},
		{"7-handshake: one codec is refused", syncFile, `if n < 1 || n > MaxCodecs {`, `if n <= 1 || n > MaxCodecs {`},
		{"7-handshake: a codec's name may be empty", syncFile, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName {`, `if len(names[i]) > MaxCodecName {`},
		{"7-handshake: a codec's name has any length", syncFile, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName {`, `if len(names[i]) < 1 {`},
		{"7-handshake: a codec's name has 33 bytes", syncFile, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName {`, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName+1 {`},
		{"7-handshake: a codec's name of 32 bytes is refused", syncFile, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName {`, `if len(names[i]) < 1 || len(names[i]) >= MaxCodecName {`},
		{"7-handshake: a codec's name of one byte is refused", syncFile, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName {`, `if len(names[i]) <= 1 || len(names[i]) > MaxCodecName {`},
		{"7-handshake: the length of a codec's name is counted in characters", syncFile, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName {`, `if k := len([]rune(names[i])); k < 1 || k > MaxCodecName {`},
		{"7-handshake: only the first codec's name is looked at", syncFile, `if len(names[i]) < 1 || len(names[i]) > MaxCodecName {`, `if i == 0 && (len(names[i]) < 1 || len(names[i]) > MaxCodecName) {`},
		{"7-handshake: an overhead of 0 is none", syncFile, `r.UintFrom("overhead", MinOverhead, MaxPipe)`, "r.Uint(\"overhead\", MaxPipe)\n\t\tif c.Overhead > 0 && c.Overhead < MinOverhead {\n\t\t\tr.Fail(r.At, \"overhead\")\n\t\t}"},
		{"7-handshake: the version has 32 bits", syncFile, `r.Uint("version", MaxPipe)`, `r.Uint("version", 1<<32-1)`},
	}
	for _, key := range [][2]string{
		{"node id", "nodeKey"}, {"session id", "sessionKey"}, {"features", "featuresKey"}, {"max message", "maxMessageKey"},
		{"early credit", "windowKey"}, {"room for Opens", "opensKey"}, {"ping interval", "pingKey"}, {"timeout", "timeoutKey"},
		{"codecs", "codecsKey"}, {"credential", "credentialKey"}, {"secret", "secretKey"}, {"received count", "receivedKey"},
		{"overhead", "overheadKey"}, {"nested room", "nestedRoomKey"}, {"nested calls", "nestedCallsKey"},
		{"extra credit", "extraKey"},
	} {
		list = append(list, mutant{"7-handshake: " + key[0] + " is not known", syncFile, "case " + key[1] + ":", "case 1000 + " + key[1] + ":"})
	}
	return list
}
