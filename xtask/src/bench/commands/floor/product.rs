//! The product's own SQL as scripts of `pgbench`: shows what our statements cost, apart from what HTTP,
//! TLS and our code cost.

/// Makes the stream.
pub(super) const OPEN: &str = "
    INSERT INTO site_coordination.stream_head (site, environment) VALUES ('pgbench', 'slurm');
    INSERT INTO site_coordination.stream_progress (site, environment) VALUES ('pgbench', 'slurm')";

/// How many results it has.
pub(super) const RESULTS: &str = "
    SELECT done_seq FROM site_coordination.stream_progress WHERE site = 'pgbench'";

/// An id that no other run, client or call makes.
const ID: &str = "'cmd_' || lpad(:run::text, 8, '0') || lpad(:client_id::text, 8, '0') || lpad(:n::text, 16, '0')";

/// The id of the next command, which a Runtime has from its page: a lookup more than the product does.
const DUE: &str = "(SELECT due.command_id FROM site_coordination.command due
    WHERE due.site = 'pgbench' AND due.environment = 'slurm' AND due.seq = :done::bigint + 1)";

/// The scripts that enqueue and that store results.
pub(super) fn scripts() -> (String, String) {
    (enqueue(), result())
}

fn enqueue() -> String {
    let sql = include_str!("../../../../../crates/site-coordination/src/sql/enqueue.sql");
    let id = format!("({ID})");
    let parameters = [
        "'pgbench'::text",
        "'slurm'::text",
        &id,
        ":n::text",
        "'job.submit'::text",
        "NULL::text",
        ":digest::bytea",
        ":body::text",
        "NULL::timestamptz",
        ":most::bigint",
    ];
    let statement = with_parameters(&beginning(sql), &parameters);
    // Where the stream is full nothing is new.
    format!(
        "\\set n :n + 1\n{statement}SELECT count(*) AS new FROM new\n\\gset\n\
         \\if :new = 0\n\\sleep 2 ms\n\\endif\n"
    )
}

fn result() -> String {
    let sql = include_str!("../../../../../crates/site-coordination/src/sql/store_result.sql");
    let parameters = [
        "'pgbench'::text",
        "'slurm'::text",
        "0::bigint",
        "0::bigint",
        "0::bigint",
        "1::bigint",
        "NULL::text",
        DUE,
        ":digest::bytea",
        "'succeeded'::text",
        ":result::text",
        "NULL::bytea",
    ];
    let statement = with_parameters(&without_comments(sql), &parameters);
    format!(
        "\\if :known = 0\nSELECT done_seq AS done, 1 AS known FROM site_coordination.stream_progress \
         WHERE site = 'pgbench'\n\\gset\n\\endif\n\
         {statement}SELECT count(stored.received_at) AS stored FROM target LEFT JOIN stored USING (seq)\n\
         \\gset\n\\if :stored = 1\n\\set done :done + 1\n\\else\n\\sleep 200 us\n\\endif\n"
    )
}

/// A statement without its last part, the `SELECT` that answers.
fn beginning(sql: &str) -> String {
    let sql = without_comments(sql);
    let end = sql.find("\n)\nSELECT ").map_or(sql.len(), |end| end + "\n)\n".len());
    sql[..end].to_owned()
}

/// `pgbench` would take a word after a colon in a comment for a variable.
fn without_comments(sql: &str) -> String {
    let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// Puts an expression in the place of each `$1`, `$2`, …; the last first, as `$1` begins `$12`.
fn with_parameters(sql: &str, parameters: &[&str]) -> String {
    let numbered = parameters.iter().enumerate().rev();
    numbered.fold(sql.to_owned(), |sql, (index, parameter)| {
        sql.replace(&format!("${}", index + 1), parameter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_and_no_comment_is_left() {
        let (enqueue, result) = scripts();
        for script in [enqueue, result] {
            assert!(!script.contains('$') && !script.contains("--"), "{script}");
        }
    }

    #[test]
    fn the_answer_of_a_statement_is_replaced() {
        let sql = "-- a: b\nWITH new AS (\n    SELECT $1\n)\nSELECT seq FROM new\n";
        assert_eq!(beginning(sql), "WITH new AS (\n    SELECT $1\n)\n");
    }
}
