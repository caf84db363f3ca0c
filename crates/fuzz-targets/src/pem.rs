//! Certificates and keys in PEM.

use chrono::{DateTime, Utc};
use service_kit::{error_chain, tls};

use crate::SECRET;

/// Who reads certificates reads the same ones, and a refusal quotes no line: the file that is named
/// by mistake may hold a key.
pub(crate) fn pem(bytes: &[u8]) {
    let text: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| if *byte == b'*' { SECRET.as_bytes().to_vec() } else { vec![*byte] })
        .collect();
    let chain = tls::certificate_chain_of(&text);
    let now: DateTime<Utc> = "2030-01-01T00:00:00Z".parse().unwrap();
    if let Ok(chain) = &chain {
        crate::taken();
        assert!(!chain.is_empty());
        let validity = tls::validity(chain);
        for certificate in chain {
            let one = tls::validity(std::slice::from_ref(certificate));
            if let (Some(one), Some(all)) = (one, validity) {
                assert!(all.not_before >= one.not_before && all.not_after <= one.not_after);
            }
            if let Some(shown) = site_admin::parsers::certificate(certificate, now) {
                assert!(one.is_some() && !shown.is_empty());
                assert!(shown.lines().count() == 5, "{shown:?}");
            }
        }
    }
    let key = tls::private_key_of(&text);
    if let Err(error) = &chain {
        crate::assert_quiet(&error.reason(), SECRET);
    }
    if let Err(error) = &key {
        crate::assert_quiet(&error.reason(), SECRET);
    }
    let roots = https_client::roots_from_pem(&text);
    match &roots {
        Ok(roots) => assert_eq!(roots.len(), chain.as_ref().map_or(0, Vec::len)),
        Err(error) => crate::assert_quiet(&error_chain(error), SECRET),
    }
    let trust = broker::parsers::trust(&text);
    assert_eq!(trust.is_ok(), roots.is_ok(), "the two readers of CA files disagree");
    if let Err(error) = trust {
        crate::assert_quiet(&error_chain(&error), SECRET);
    }
    let of_the_database = database::parsers::roots(&text);
    assert_eq!(
        of_the_database.as_ref().ok(),
        roots.as_ref().map(|roots| roots.len()).ok().as_ref()
    );
    if let Err(told) = of_the_database {
        crate::assert_quiet(&told, SECRET);
    }
    if let (Ok(chain), Ok(key)) = (chain, key)
        && let Err(error) = tls::server_config_of(chain, key)
    {
        crate::assert_quiet(&error.reason(), SECRET);
    }
}
