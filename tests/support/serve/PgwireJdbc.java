// What a Java program does with a database, through pgjdbc; it prints what it sees, line by line.
// Run as: java -cp postgresql.jar PgwireJdbc.java URL

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.util.*;
import org.postgresql.PGConnection;

public class PgwireJdbc {
    public static void main(String[] args) throws Exception {
        Properties options = new Properties();
        options.setProperty("user", "noonmark");
        options.setProperty("prepareThreshold", "2"); // soon named on the server, and binary
        try (Connection line = DriverManager.getConnection(args[0], options)) {
            tables(line);
            values(line);
            parts(line);
            transactions(line);
            copies(line);
            errors(line);
        }
    }

    static void say(String what, Object... seen) {
        StringBuilder text = new StringBuilder(what + ":");
        for (Object one : seen) text.append(" ").append(one);
        System.out.println(text);
    }

    static void tables(Connection line) throws SQLException {
        try (Statement statement = line.createStatement()) {
            statement.execute("create table goods (id int primary key, name text not null)");
            say("insert", statement.executeUpdate("insert into goods values (1, 'lamp'), (2, 'desk')"));
        }
        DatabaseMetaData about = line.getMetaData();
        say("product", about.getDatabaseProductName());
        try (ResultSet found = about.getTables(null, "public", "goods", new String[] {"TABLE"})) {
            while (found.next()) say("table", found.getString("TABLE_NAME"));
        }
        try (ResultSet found = about.getColumns(null, "public", "goods", "%")) {
            while (found.next())
                say("column", found.getString("COLUMN_NAME"), found.getString("TYPE_NAME"),
                    found.getString("IS_NULLABLE"));
        }
        try (ResultSet found = about.getPrimaryKeys(null, "public", "goods")) {
            while (found.next()) say("key", found.getString("COLUMN_NAME"));
        }
    }

    static void values(Connection line) throws SQLException {
        try (Statement statement = line.createStatement()) {
            statement.execute("create table kinds (a smallint, b bigint, c double precision,"
                + " d numeric(9,2), e date, f timestamp, g boolean, h bytea, i uuid, j integer[])");
        }
        String insert = "insert into kinds values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement into = line.prepareStatement(insert)) {
            for (int turn = 0; turn < 4; turn++) {
                into.setShort(1, (short) turn);
                into.setLong(2, 1L << 40);
                into.setDouble(3, 0.5);
                into.setBigDecimal(4, new BigDecimal("-12.30"));
                into.setObject(5, LocalDate.of(2024, 2, 29));
                into.setTimestamp(6, Timestamp.valueOf("2024-01-02 03:04:05.6"));
                into.setBoolean(7, true);
                into.setBytes(8, new byte[] {0, 1});
                into.setObject(9, new UUID(0, 7));
                into.setArray(10, line.createArrayOf("integer", new Integer[] {1, null, 3}));
                into.addBatch();
            }
            say("batch", Arrays.toString(into.executeBatch()));
        }
        try (PreparedStatement from = line.prepareStatement("select * from kinds where a = ?")) {
            for (int turn = 0; turn < 4; turn++) {
                from.setInt(1, turn);
                try (ResultSet row = from.executeQuery()) {
                    row.next();
                    say("row", row.getShort(1), row.getLong(2), row.getDouble(3),
                        row.getBigDecimal(4), row.getObject(5, LocalDate.class),
                        row.getTimestamp(6), row.getBoolean(7), Arrays.toString(row.getBytes(8)),
                        row.getObject(9), Arrays.toString((Object[]) row.getArray(10).getArray()));
                }
            }
        }
    }

    static void parts(Connection line) throws SQLException {
        line.setAutoCommit(false);
        try (Statement statement = line.createStatement()) {
            statement.setFetchSize(7); // portals, suspended every 7 rows
            long sum = 0;
            String all = "select n from generate_series(1, 100) as g(n) order by n";
            try (ResultSet rows = statement.executeQuery(all)) {
                while (rows.next()) sum += rows.getLong(1);
            }
            say("sum", sum);
        }
        line.commit();
        line.setAutoCommit(true);
    }

    static void transactions(Connection line) throws SQLException {
        line.setAutoCommit(false);
        try (Statement statement = line.createStatement()) {
            statement.executeUpdate("insert into goods values (3, 'chair')");
            line.rollback();
            statement.executeUpdate("insert into goods values (4, 'bed')");
            line.commit();
        }
        line.setAutoCommit(true);
        try (Statement statement = line.createStatement();
             ResultSet rows = statement.executeQuery("select id, name from goods order by id")) {
            while (rows.next()) say("good", rows.getInt(1), rows.getString(2));
        }
    }

    static void copies(Connection line) throws Exception {
        var copy = line.unwrap(PGConnection.class).getCopyAPI();
        say("copied", copy.copyIn("copy goods from stdin (format csv)", new StringReader("5,\"a,b\"\n")));
        StringWriter out = new StringWriter();
        copy.copyOut("copy (select name from goods where id = 5) to stdout", out);
        say("copy", out.toString().trim());
    }

    static void errors(Connection line) throws SQLException {
        String[] bad = {"select * from nowhere", "select 1 / 0", "insert into goods values (1, 'x')"};
        for (String text : bad) {
            try (Statement statement = line.createStatement()) {
                statement.execute(text);
            } catch (SQLException error) {
                say("error", error.getSQLState());
            }
        }
        try (Statement statement = line.createStatement()) {
            statement.setQueryTimeout(1);
            statement.executeQuery("subscribe goods");
        } catch (SQLException error) {
            say("timeout", error.getSQLState());
        }
    }
}
