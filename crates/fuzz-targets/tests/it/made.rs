//! Each target that has a grammar with inputs that are made by it, mostly right: bytes that change at
//! random rarely get that deep.

use fuzz_targets::check;
use proptest::prelude::*;

/// One of some words.
fn of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words)
}

/// The right word, or now and then one of the others: with many places to be wrong at, most would be
/// wrong at several.
fn mostly(
    right: &'static str,
    wrong: &'static [&'static str],
) -> impl Strategy<Value = &'static str> {
    prop_oneof![9 => Just(right), 1 => of(wrong)]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..5u64).prop_map(|number| number.to_string()),
        of(&["9223372036854775807", "9223372036854775808", "18446744073709551615", "-1", "007"])
            .prop_map(str::to_owned),
    ]
}

fn time() -> impl Strategy<Value = String> {
    let day = of(&["0000-01-01", "1969-12-31", "2029-12-31", "2030-06-30", "9999-12-31"]);
    let clock = of(&["00:00:00", "23:59:59", "23:59:60", "12:00:00.5", "23:59:59.999999999"]);
    let zone = of(&["Z", "+00:01", "-00:01", "+23:59", "-23:59", "z", ""]);
    (day, clock, zone).prop_map(|(day, clock, zone)| format!("{day}T{clock}{zone}"))
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        of(&["null", "1e999", "-0.0", "\"\\ud800\"", "\"[{\"", "\"\\\\\"", "*", "01"]),
        of(&["\"*\"", "true", "{}", "[]", " 1 ", "\"\\u0000\""]),
    ];
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(5, 32, 4, |inner| {
        let name = of(&["\"a\"", "\"b\"", "\"outcome\"", "\"\\udc00\"", "\"a\\u0062\""]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec((name, inner), 0..4).prop_map(|all| {
                let all: Vec<_> =
                    all.iter().map(|(name, value)| format!("{name}:{value}")).collect();
                format!("{{{}}}", all.join(" ,\n"))
            }),
        ]
    })
}

/// Texts that stand beside each other.
fn joined(
    parts: impl Strategy<Value = String>,
    most: usize,
    between: &'static str,
) -> impl Strategy<Value = String> {
    prop::collection::vec(parts, 0..most).prop_map(move |parts| parts.join(between))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn urls(
        scheme in of(&["postgresql", "postgres", "amqps", "amqp", "https", "HTTPS", "x"]),
        user in of(&["", "r@", "r:*@", "r%40:%2F@", "a@b:*@", ":*@", "r:@", "r:p:*@"]),
        host in of(&["h", "H.example", "[::1]", "h1,h2", "%2Ftmp", "a..b", "-a", "a~b", "127.1", "", "b\u{fc}cher"]),
        port in of(&["", ":1", ":5432", ":443", ":0", ":99999", ":"]),
        path in of(&["", "/", "/d", "/d/e", "/a@b", "/a:b@c/d", "/%2F", "//d", "/../d"]),
        query in joined(of(&["sslmode=disable", "sslmode=verify-full", "sslrootcert=/ca", "host=o",
            "user=o", "hostaddr=127.0.0.1", "password=*", "%73slmode=disable", "sslmode=require"])
            .prop_map(str::to_owned), 4, "&"),
        fragment in of(&["", "", "", "#", "#x", "#x?host=o&user=o"]),
    ) {
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let url = format!("{scheme}://{user}{host}{port}{path}{query}{fragment}");
        for target in ["database_url", "broker_url", "origin"] {
            check(target, url.as_bytes());
        }
    }

    #[test]
    fn heads(
        first in of(&["GET / HTTP/1.1", "PUT /x HTTP/1.1", "GET / HTTP/1.0", "GET http://a/ HTTP/1.1",
            "CONNECT a:1 HTTP/1.1", "OPTIONS * HTTP/1.1", "GET  / HTTP/1.1", "GET / HTTP/1.2", "\r\nGET / HTTP/1.1"]),
        lines in prop::collection::vec(of(&["host: a", "Host: a", "host: b", "content-length: 3",
            "Content-Length: 0", "content-length: 03", "content-length: 3 ", "content-length: 3,3",
            "content-length : 3", "transfer-encoding: chunked", "Transfer-Encoding: gzip, chunked",
            "transfer-encoding:", "connection: close", "connection: keep-alive", "expect: 100-continue",
            "upgrade: x", " folded", "x:", "x: \u{e9}", "content-length\t: 3"]), 0..5),
        host in any::<bool>(),
        end in of(&["\r\n", "\r\n", "\r\n", "\n", "\r\r\n"]),
        rest in of(&["", "abc", "3\r\nabc\r\n0\r\n\r\n", "GET /y HTTP/1.1\r\nhost: a\r\n\r\n"]),
    ) {
        let host = if host { "host: a" } else { "y: 1" };
        let all = [&[first, host][..], &lines].concat().join(end);
        check("head", format!("{all}{end}{end}{rest}").as_bytes());
    }

    #[test]
    fn polls(
        query in joined((of(&["after", "limit", "wait", "cancelRev", "next", "x", "%61fter"]), number())
            .prop_map(|(name, number)| format!("{name}={number}")), 5, "&"),
        generation in number(),
        session in of(&["", "\nruntime-session: 0123456789abcdef", "\nruntime-session: short"]),
    ) {
        check("poll", format!("{query}\nruntime-generation: {generation}{session}").as_bytes());
    }

    #[test]
    fn jsons(text in json(), before in of(&["", " ", "\n", "\u{a0}"])) {
        for target in ["json_text", "json_object", "result", "session", "line"] {
            check(target, format!("{before}{text}").as_bytes());
        }
        let result = format!("{{\"outcome\":\"failed\",\"output\":{text}}}{before}");
        check("result", result.as_bytes());
        let line = format!("{{\"key\":\"k\",\"kind\":\"a\",\"body\":{text}}}");
        check("line", line.as_bytes());
    }

    #[test]
    fn grants_files(rows in joined((
        of(&["0123456789abcdef", "1123456789abcdef", "0123456789abcdeu", "*"]),
        of(&["commands", "ssh-access", "*"]),
        of(&["\"environment\":\"slurm\",", "\"environment\":\"k8s\",", "", "\"*\":1,", "\"x\":1,"]),
        time(), time(), of(&["", "\"revokedAt\":\"2029-12-31T00:00:00Z\","]),
    ).prop_map(|(id, scope, more, issued, expires, revoked)| format!(
        "{{\"id\":\"{id}\",\"principal\":\"{scope}@s\",\"scope\":\"{scope}\",\"site\":\"s\",{more}{revoked}\
         \"digest\":\"{}\",\"issuedAt\":\"{issued}\",\"expiresAt\":\"{expires}\"}}", "ab".repeat(32))), 4, ",")
    ) {
        check("grants", format!("{{\"version\":1,\"grants\":[{rows}]}}").as_bytes());
    }

    #[test]
    fn journals(lines in joined((
        of(&["started", "finished", "received", "kept", "generation", "cursor"]),
        of(&["a", "b", "c", "d", "e"]), number(), number(), any::<bool>(),
    ).prop_map(|(record, id, seq, bytes, output)| {
        let digest = "ab".repeat(32);
        let output = if output {
            format!(",\"output\":{{\"digest\":\"{digest}\",\"bytes\":{bytes}}}")
        } else {
            String::new()
        };
        format!("{{\"record\":\"{record}\",\"seq\":{seq},\"commandId\":\"{id}\",\"generation\":{seq},\
            \"digest\":\"{digest}\",\"chainDigest\":\"{digest}\",\"try\":1,\"result\":\"{}\"{output}}}\n",
            "r".repeat(id.len() * 20))
    }), 12, "")) {
        check("journal", format!("{{\"journal\":1,\"origin\":\"https://site.example\"}}\n{lines}").as_bytes());
    }

    #[test]
    fn pages(
        after in number(), limit in number(), rev in number(), seqs in prop::collection::vec(number(), 0..4),
        next in number(), last in number(), head in number(), cancel in number(), body in json(), time in time(),
    ) {
        let digest = "ab".repeat(32);
        let commands: Vec<_> = seqs.iter().map(|seq| format!(
            "{{\"commandId\":\"cmd_0123456789abcdefghjkmnpqrstvwxyz\",\"seq\":{seq},\"kind\":\"a\",\"digest\":\"{digest}\",\
              \"notAfter\":\"{time}\",\"createdAt\":\"2030-01-01T00:00:00Z\",\"body\":{body}}}")).collect();
        check("page", format!(
            "{after} {limit} {rev}\n{{\"commands\":[{}],\"nextAfter\":{next},\"nextDigest\":\"{digest}\",\"lastSeq\":{last},\
             \"head\":{{\"seq\":{head},\"ageSeconds\":1}},\"cancelRev\":{cancel},\
             \"cancelled\":[{{\"commandId\":\"x\",\"seq\":{head}}}],\"serverTime\":\"2030-01-01T00:00:00Z\"}}",
            commands.join(",")).as_bytes());
    }

    #[test]
    fn answers(
        status in of(&["200", "201", "409", "503", "302"]), told in of(&["200", "409", "503"]),
        media in of(&["application/problem+json", "Application/Problem+JSON; x=1", "text/html", ""]),
        after in number(), code in of(&["cursor_trimmed", "stale_generation", "overloaded", "newer", "*"]),
        source in of(&["site-api", "gateway"]), extra in json(),
    ) {
        check("answer", format!(
            "{status}\n{media}\n{after}\n{{\"type\":\"u\",\"title\":\"\",\"status\":{told},\"detail\":\"d\",\"code\":\"{code}\",\
             \"retryable\":true,\"retryAfterMs\":{after},\"source\":\"{source}\",\"after\":{after},\"x\":{extra}}}").as_bytes());
    }

    #[test]
    fn acknowledgements(
        cursor in mostly("0.0000000000000000000000000000000000000000000000000000000000000000", &[
            "7.abababababababababababababababababababababababababababababababab", "7", "0.ab", "-1.", "*",
        ]),
        chain in mostly("abababababababababababababababababababababababababababababababab", &["AB", "", "*"]),
        set in mostly("", &[
            "\"setDigest\":null,", "\"setDigest\":\"*\",", "\"setDigest\":7,",
            "\"setDigest\":\"0000000000000000000000000000000000000000000000000000000000000000\",",
        ]),
        more in mostly("", &["\"*\":1,", "\"failures\":[],", "\"cursor\":\"x\","]),
        failures in joined((
            mostly("alice", &["bob", "root", "al\\u0069ce", "a/b", "*", ""]),
            mostly("key_00000000000000000000000000", &["key_00000000000000000000000004", "key_", "*"]),
            mostly("the folder is full", &["", "*", "\\n", "\u{e9}", "x y", "\\ud800"]),
            mostly("", &[",\"x\":1", ",\"reason\":\"again\"", ",\"*\":[]"]),
        ).prop_map(|(user, key, reason, more)| format!(
            "{{\"unixUser\":\"{user}\",\"keyId\":\"{key}\",\"reason\":\"{reason}\"{more}}}"
        )), 4, ","),
    ) {
        check("ssh_acknowledgement", format!(
            "{{{set}{more}\"cursor\":\"{cursor}\",\"chainDigest\":\"{chain}\",\"failures\":[{failures}]}}").as_bytes());
    }

    #[test]
    fn subject_maps(maps in joined(joined((
        of(&["system:serviceaccount:a:b", "system:serviceaccount:a:c.d-1", "system:serviceaccount:a:b:c", "*",
            "system:serviceaccount:-a:b", "system:serviceaccount:a:\\u0062", "system:serviceaccount:a:e"]),
        of(&["\"k8s\"", "\"slurm\"", "\"k8s\"", "\"*\"", "null", "[\"k8s\"]"]),
    ).prop_map(|(subject, value)| format!("\"{subject}\":{value}")), 4, ",").prop_map(|rows| format!("{{{rows}}}")), 3, "\n")) {
        check("subjects", maps.as_bytes());
    }

    #[test]
    fn reviews(
        status in mostly("201", &["200", "401", "403", "429", "503", "400"]),
        token in mostly("*", &["other", "", "**"]),
        authenticated in mostly("\"authenticated\":true,", &["\"authenticated\":false,", "", "\"authenticated\":null,"]),
        error in mostly("", &["\"error\":\"\",", "\"error\":\"*\",", "\"error\":null,"]),
        audiences in mostly("[\"site-control\"]", &["[\"x\",\"site-control\"]", "[]", "null", "[\"x\"]"]),
        user in mostly("system:serviceaccount:a:b", &["system:serviceaccount:a:b:c", "system:node:a", "*", ""]),
        uid in mostly("\"u\"", &["\"\"", "null", "\"\u{e9}\"", "\"*\""]),
        pod in mostly("[\"p\"]", &["[\"p\",\"q\"]", "[]", "null", "[\"\\n\"]", "[\"*\"]"]),
        more in mostly("", &[",\"kind\":\"TokenReview\"", ",\"x\":{}"]),
    ) {
        check("review", format!(
            "{status}\n{{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"spec\":{{\"token\":\"{token}\"}},\
             \"status\":{{{authenticated}{error}\"audiences\":{audiences},\"user\":{{\"username\":\"{user}\",\"uid\":{uid},\
             \"extra\":{{\"authentication.kubernetes.io/pod-uid\":{pod},\"authentication.kubernetes.io/pod-name\":{pod}}}}}}}{more}}}").as_bytes());
    }

    #[test]
    fn logins(
        alg in mostly("\"EdDSA\"", &["\"none\"", "\"ES256\"", "1", "\"*\""]),
        header in mostly("\"kid\":\"k\",\"typ\":\"at+jwt\"", &["\"kid\":\"k\"", "\"kid\":\"k\",\"typ\":\"JWT\"",
            "\"kid\":\"*\"", "\"kid\":\"k\",\"crit\":[]", "\"kid\":\"k\",\"kid\":\"k\"", "\"typ\":\"at+jwt\""]),
        iss in mostly("\"https://login.example/realms/x\"", &["\"https://login.example/realms/x/\"", "null", "[\"*\"]"]),
        aud in mostly("\"us\"", &["[\"us\"]", "[\"us\",\"us\"]", "[\"*\",\"us\"]", "\"*\"", "[]", "null"]),
        sub in mostly("\"m\"", &["\"\"", "\"a b\"", "\"\\u0000\"", "7", "\"*\""]),
        exp in mostly("1893456300", &["1893455971", "1893455970", "1.5e9", "-1", "18446744073709551615", "\"*\""]),
        more in mostly("", &[",\"nbf\":1893456030", ",\"nbf\":1893456031", ",\"iat\":1893456031", ",\"typ\":\"Bearer\"",
            ",\"typ\":\"ID\"", ",\"cnf\":{}", ",\"aud\":\"us\"", ",\"x\":\"\\ud800\""]),
    ) {
        check("login_token", format!("{{\"alg\":{alg},{header}}}\n{{\"iss\":{iss},\"aud\":{aud},\"sub\":{sub},\"exp\":{exp}{more}}}").as_bytes());
    }

    #[test]
    fn sets_of_keys(keys in joined((
        of(&["k", "l", "*", ""]),
        of(&["\"EC\",\"crv\":\"P-256\"", "\"OKP\",\"crv\":\"Ed25519\"", "\"RSA\"", "\"oct\"", "1"]),
        of(&["AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE", "AQAB", "*", ""]),
        of(&["", ",\"use\":\"sig\"", ",\"use\":\"enc\"", ",\"d\":\"*\"", ",\"alg\":\"EdDSA\"", ",\"kid\":\"k\"", ",\"key_ops\":[\"verify\"]"]),
    ).prop_map(|(kid, kind, octets, more)| format!(
        "{{\"kid\":\"{kid}\",\"kty\":{kind},\"x\":\"{octets}\",\"y\":\"{octets}\",\"n\":\"{octets}\",\"e\":\"AQAB\"{more}}}"
    )), 5, ",")) {
        check("login_keys", format!("{{\"keys\":[{keys}]}}").as_bytes());
    }

    #[test]
    fn discovery_documents(
        issuer in mostly("https://login.example/realms/x", &["https://login.example/realms/x/", "*", ""]),
        scheme in mostly("https://", &["http://", "", "HTTPS://", "https:\\\\"]),
        user in mostly("", &["u@", "*@", "@"]),
        host in mostly("login.example", &["LOGIN.example", "login.example:443", "login.example:8443", "evil.example", "login.example.", "[::1]"]),
        path in of(&["", "/", "/certs?a=b c", "/a/../b", "//x", "/#f", "?", "/\u{e9}", "/%zz", "/a|b", "/[x]"]),
    ) {
        check("login_keys", format!("{{\"issuer\":\"{issuer}\",\"jwks_uri\":\"{scheme}{user}{host}{path}\"}}").as_bytes());
    }

    #[test]
    fn settings(lines in joined((
        prop::sample::select(('a'..='p').collect::<Vec<_>>()),
        prop_oneof![number(), of(&["", "*", " 1", "01", "+1", "1e3", "https://h", "https://*@h",
            "postgresql://r:*@h/d?sslmode=disable", "/ca.pem"]).prop_map(str::to_owned)],
    ).prop_map(|(letter, value)| format!("{letter}{value}")), 8, "\n")) {
        check("settings", lines.as_bytes());
    }

    #[test]
    fn texts(text in "([ -~]|\n| ){0,40}", any in any::<Vec<u8>>()) {
        for target in ["manifest", "names", "hint", "token", "authorization", "process", "settings", "pem"] {
            check(target, text.as_bytes());
            check(target, &any);
        }
    }
}
