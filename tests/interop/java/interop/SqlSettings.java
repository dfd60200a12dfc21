package interop;

import org.apache.activemq.artemis.core.config.storage.DatabaseStorageConfiguration;
import org.apache.activemq.artemis.jdbc.store.sql.PropertySQLProvider;
import org.apache.activemq.artemis.jdbc.store.sql.SQLProvider;
import org.apache.commons.dbcp2.BasicDataSource;

/** How a request reaches a database: `url`, `driver`, and the periods of its leases. */
final class SqlSettings {
   private SqlSettings() {
   }

   /** The pool that Artemis makes by itself, made here so that it can be closed. */
   static BasicDataSource source(Settings settings) {
      BasicDataSource source = new BasicDataSource();
      source.setUrl(settings.text("url"));
      source.setDriverClassName(settings.text("driver"));
      source.setMaxTotal(-1);
      source.setPoolPreparedStatements(true);
      return source;
   }

   static DatabaseStorageConfiguration of(Settings settings, BasicDataSource source) {
      DatabaseStorageConfiguration configuration = new DatabaseStorageConfiguration();
      configuration.setDataSource(source);
      configuration.setJdbcLockExpirationMillis(settings.number("expiration_ms", 20000));
      configuration.setJdbcLockRenewPeriodMillis(settings.number("renew_period_ms", 4000));
      configuration.setJdbcLockAcquisitionTimeoutMillis(settings.number("acquisition_timeout_ms", -1));
      configuration.setJdbcJournalSyncPeriodMillis(settings.number("sync_period_ms", 5));
      return configuration;
   }

   static SQLProvider provider(DatabaseStorageConfiguration configuration, String table, SQLProvider.DatabaseStoreType type) {
      return new PropertySQLProvider.Factory(configuration.getConnectionProvider()).create(table, type);
   }
}
