import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/** Every method of JDBC's DatabaseMetaData, called with arguments that find what there is. */
public class PgMetadata {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            DatabaseMetaData asked = connection.getMetaData();
            Method[] methods = DatabaseMetaData.class.getMethods();
            Arrays.sort(methods, Comparator.comparing(Method::getName));
            for (Method method : methods) {
                if (method.getDeclaringClass() != DatabaseMetaData.class) continue;
                try {
                    Object answer = method.invoke(asked, values(method));
                    if (answer instanceof ResultSet rows) show(method.getName(), rows);
                } catch (java.lang.reflect.InvocationTargetException error) {
                    Throwable cause = error.getCause();
                    if (!(cause instanceof java.sql.SQLFeatureNotSupportedException))
                        System.out.println(method.getName() + " failed: " + cause.getMessage().replace("\n", " "));
                }
            }
        }
    }

    /** A table's name where one is asked for, and patterns that match all. */
    private static Object[] values(Method method) {
        Class<?>[] types = method.getParameterTypes();
        Object[] found = new Object[types.length];
        boolean exact = method.getName().matches("get(PrimaryKeys|ImportedKeys|ExportedKeys|IndexInfo|BestRowIdentifier|VersionColumns)");
        int texts = 0;
        for (int at = 0; at < types.length; at++) {
            if (types[at] == boolean.class) found[at] = false;
            else if (types[at] == int.class) found[at] = 1;
            else if (types[at] == String.class) {
                texts++;
                if (texts == 1) found[at] = null;
                else if (texts == 2) found[at] = "jdbc";
                else found[at] = exact && texts == 3 ? "goods" : "%";
            }
        }
        if (method.getName().equals("getCrossReference"))
            return new Object[] {null, "jdbc", "goods", null, "jdbc", "sales"};
        return found;
    }

    private static void show(String name, ResultSet rows) throws Exception {
        ResultSetMetaData columns = rows.getMetaData();
        List<String> names = new ArrayList<>();
        for (int at = 1; at <= columns.getColumnCount(); at++) names.add(columns.getColumnLabel(at));
        System.out.println(name + " columns: " + String.join(", ", names));
        List<String> lines = new ArrayList<>();
        while (rows.next()) {
            List<String> values = new ArrayList<>();
            for (int at = 1; at <= columns.getColumnCount(); at++) values.add(rows.getString(at));
            lines.add(name + ": " + String.join(" | ", values));
        }
        lines.stream().sorted().forEach(System.out::println);
    }
}
