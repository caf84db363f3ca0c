//! One SQL text with its parameters and its row.

use diesel::{
    QueryResult,
    deserialize::FromSqlRow,
    expression::QueryMetadata,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    query_dsl::CompatibleType,
    serialize::ToSql,
    sql_types::HasSqlType,
};

/// A statement whose text numbers its parameters itself (`$1`, `$2`, …), so that one parameter can
/// stand in several places. It is prepared once on each connection.
pub trait Statement: Send + Sync + 'static {
    /// The text.
    const SQL: &'static str;
    /// The SQL types of the columns of a row.
    type Columns: CompatibleType<Self::Row, Pg, SqlType = Self::Columns> + Send + 'static;
    /// A row.
    type Row: FromSqlRow<Self::Columns, Pg> + Send + 'static;

    /// Binds the parameters in the order of their numbers.
    ///
    /// # Errors
    ///
    /// A value that can't be written as its SQL type.
    fn bind<'b>(&'b self, binds: &mut Binds<'_, 'b>) -> QueryResult<()>;
}

/// Where a [`Statement`] puts its parameters.
pub struct Binds<'a, 'b>(AstPass<'a, 'b, Pg>);

impl<'b> Binds<'_, 'b> {
    /// Binds the next parameter as the SQL type `T`.
    ///
    /// # Errors
    ///
    /// A value that can't be written as `T`.
    pub fn push<T, U>(&mut self, value: &'b U) -> QueryResult<()>
    where
        Pg: HasSqlType<T>,
        U: ToSql<T, Pg> + ?Sized,
    {
        self.0.push_bind_param::<T, U>(value)
    }
}

/// A [`Statement`] as diesel runs it. The type is the key of the prepared statement.
pub(crate) struct Prepared<'s, S>(pub(crate) &'s S);

impl<S: Statement> QueryId for Prepared<'_, S> {
    type QueryId = Prepared<'static, S>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<S: Statement> Query for Prepared<'_, S> {
    type SqlType = S::Columns;
}

impl<S: Statement> QueryFragment<Pg> for Prepared<'_, S>
where
    Pg: QueryMetadata<S::Columns>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // diesel writes a placeholder wherever a value is bound. In a comment they number the
        // values without being read by the server; the text then uses the numbers freely.
        pass.push_sql("/* ");
        self.0.bind(&mut Binds(pass.reborrow()))?;
        pass.push_sql(" */ ");
        pass.push_sql(S::SQL);
        Ok(())
    }
}
